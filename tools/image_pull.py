"""Pull an image, refused before any download where it is for other machines."""

from __future__ import annotations

from tools.base import CallContext, Observation, Risk, Subject, Tool
from tools.command import Command, Result
from tools.docker import docker, engine_answers, failure, image_subject, mib
from tools.docker_engine import architecture
from tools.errors import BadReply
from tools.images import ImageArgs


class ImagePulled(Observation):
    """An image that is on the engine now."""

    image: str
    id: str
    digest: str
    """As the registry has it, ``sha256:...``; empty where it did not say."""
    platform: str
    size_mib: int
    """Unpacked, layers that other images share included."""
    already: bool
    """Whether the engine had it as it is in the registry."""

    def headline(self) -> str:
        """What came, and how large it is."""
        done = "was up to date" if self.already else "pulled"
        return f"{self.image} {done}: {self.id[:19]}, {self.platform}, {self.size_mib} MiB"


class PullImage(Tool[ImageArgs, ImagePulled]):
    """Pull an image from its registry; refused at once when it is not for the engine's platform."""

    risk = Risk.CHANGE
    needs = ("image_has_room",)
    establishes = ("image_present",)
    runs_in = "image"

    def title(self, args: ImageArgs) -> str:
        """Name it."""
        return f"Pull the image {args.image}."

    def command(self, args: ImageArgs, call: CallContext) -> Command:
        """Return ``docker pull``, carried out by our client of the engine."""
        return docker("pull", args.image, timeout_s=4 * 3600.0, via="engine")

    def parse(self, args: ImageArgs, call: CallContext, result: Result) -> ImagePulled:
        """Read what came.

        Raises:
            ToolFailed: no fitting platform, no such image, no space, or the engine or the registry
                cannot be used; the message holds their words.
        """
        if not result.ok:
            raise failure(f"docker pull {args.image}", result)
        rows = engine_answers(result.stdout)
        image = next((row["image"] for row in reversed(rows) if "image" in row), None)
        if image is None:
            raise BadReply(f"docker pull {args.image}: the engine does not say what came")
        status = [row.get("status", "") for row in rows]
        platform = f"{image.get('Os', '')}/{architecture(image.get('Architecture', ''))}"
        return ImagePulled(
            image=args.image,
            id=image["Id"],
            digest=next((row["digest"] for row in rows if row.get("digest")), ""),
            platform=platform,
            size_mib=mib(image.get("Size")),
            already=any(text.startswith("Status: Image is up to date") for text in status),
        )

    def subjects(self, args: ImageArgs) -> tuple[Subject, ...]:
        """The image."""
        return (image_subject(args.image),)

    def undo_text(self, args: ImageArgs) -> str:
        """A pulled image is removed."""
        return f"docker image rm {args.image} (remove_image)"
