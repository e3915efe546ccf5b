"""The machine as such: system, processors, memory, limits, clock; and what a container is given."""

from __future__ import annotations

import re
from typing import Literal

from tools.machine_parts import Clock, Cpu, Limits, Memory, Passthrough, System
from tools.machine_text import Part, by_words, decimal, mib_of_bytes, mib_of_kib, whole

ADMINS = ("sudo", "wheel", "admin")
"""Groups whose members may become root."""
_CONTAINERS = (("docker", "docker"), ("kubepods", "kubernetes"), ("libpod", "podman"))
_LXC = re.compile(r"(^|[:/])(lxc/|lxc\.payload)")


def system_of(part: Part, inside: Part) -> System:
    """Read who the machine is."""
    release = by_words(part.lines, "=")
    groups = tuple(part.value("groups").split())
    product = part.value("product_name").strip("\x00")
    maker = part.value("sys_vendor")
    known = maker if maker and not product.startswith(maker) else ""
    return System(
        name=part.value("uname_n"),
        system=part.value("uname_s"),
        os=release.get("PRETTY_NAME", "").strip('"'),
        kernel=part.value("uname_r"),
        arch=part.value("uname_m"),
        product=" ".join(filter(None, (known, product))),
        user=part.value("user"),
        uid=whole(part.value("uid")),
        groups=groups,
        home=part.value("home"),
        boot_id=part.value("boot"),
        uptime_s=decimal(part.value("uptime").partition(" ")[0]),
        init=part.value("init"),
        systemd=part.value("systemd") == "yes",
        inside=inside_of(inside),
        sudo=_sudo(part.value("uid"), groups),
    )


def _sudo(uid: str, groups: tuple[str, ...]) -> Literal["root", "member", ""]:
    if uid == "0":
        return "root"
    return "member" if set(groups) & set(ADMINS) else ""


def inside_of(part: Part) -> str:
    """Return the kind of container that this is the inside of, or the empty text."""
    detected = part.value("detected")
    if detected:
        return "" if detected == "none" else detected.removesuffix("-libvirt")
    for kind in filter(None, part.values("virt")):
        return kind
    for group in part.values("cgroup"):
        if _LXC.search(group):
            return "lxc"
        for sign, kind in _CONTAINERS:
            if f"/{sign}" in group:
                return kind
    return ""


def passthrough_of(part: Part) -> Passthrough:
    """Read which devices a container may use."""
    rules = tuple(part.values("rule"))
    majors = [whole(row.split()[0]) for row in part.values("major") if row]
    maps = [row.split() for row in part.values("uid_map")]
    return Passthrough(
        cgroup_rules=rules[:40],
        rules_readable=bool(rules),
        nvidia_major=tuple(sorted({major for major in majors if major is not None})),
        unprivileged=any(row[1:2] != ["0"] for row in maps) if maps else None,
    )


def cpu_of(part: Part) -> Cpu:
    """Read the processors."""
    named = by_words(part.lines, ":")
    models = (named.get(key, "") for key in ("Model name", "model name", "Model", "Hardware"))
    cores = whole(part.value("nproc")) or whole(part.value("count")) or None
    quota, _, period = part.value("quota").partition(" ")
    most, every = whole(quota), whole(period)
    limit = most / every if most and every and most > 0 and every > 0 else None
    fewer = limit is not None and (cores is None or limit < cores)
    return Cpu(
        model=next((model for model in models if model not in ("", "-")), ""),
        cores=cores,
        limit=limit if fewer else None,
    )


def memory_of(part: Part) -> Memory | None:
    """Read the memory; ``None`` where /proc does not tell it."""
    rows = {name: value.partition(" ")[0] for name, value in by_words(part.lines, ":").items()}
    total = mib_of_kib(rows.get("MemTotal", ""))
    if total is None:
        return None
    available = mib_of_kib(rows.get("MemAvailable", rows.get("MemFree", "")))
    swap = mib_of_kib(rows.get("SwapTotal", ""))
    free = mib_of_kib(rows.get("SwapFree", ""))
    limit, used = _group_limit(part, total)
    huge = (whole(rows.get("HugePages_Total", "")) or 0) * (
        whole(rows.get("Hugepagesize", "")) or 0
    )
    return Memory(
        total_mib=total,
        available_mib=available,
        swap_total_mib=swap,
        swap_used_mib=None if swap is None or free is None else swap - free,
        limit_mib=limit,
        limit_used_mib=used,
        hugepages_mib=huge // 1024 or None,
    )


def _group_limit(part: Part, total: int) -> tuple[int | None, int | None]:
    """Return what a control group leaves and what of it is used, in MiB, where it is less."""
    limit = mib_of_bytes(part.value("cgroup_max") or part.value("cgroup_limit_in_bytes"))
    if limit is None or limit >= total:
        return None, None
    used = mib_of_bytes(part.value("cgroup_current") or part.value("cgroup_usage_in_bytes"))
    cached = mib_of_bytes(
        part.value("cgroup_inactive_file") or part.value("cgroup_total_inactive_file")
    )
    return limit, None if used is None else max(used - (cached or 0), 0)


def limits_of(part: Part, shm_mib: int | None) -> Limits:
    """Read what a process may use."""
    return Limits(
        memlock_kib=_limit(part.value("memlock")),
        nofile=_limit(part.value("nofile")),
        nofile_hard=_limit(part.value("nofile_hard")),
        shm_mib=shm_mib,
    )


def _limit(text: str) -> int | None:
    return -1 if text == "unlimited" else whole(text)


def clock_of(
    began: Part, ended: Part, synced: Part, sent_at: float | None, received_at: float | None
) -> Clock | None:
    """Compare the machine's clock with ours.

    It was read at the begin and at the end of the script; what of the whole time passed outside of
    the script was spent on the way, there or back, we do not know which.
    """
    first, last = _epoch(began.text), _epoch(ended.text)
    if first is None:
        return None
    words = by_words(synced.lines, "=").get("NTPSynchronized", "")
    known = {"yes": True, "no": False}.get(words)
    if sent_at is None or received_at is None:
        return Clock(epoch_s=first, synchronized=known)
    # It began after we sent, and ended before we received: so much it is ahead at most, at least.
    most = first - sent_at + (0.0 if re.search(r"\.\d", began.text) else 1.0)
    least = (first if last is None else last) - received_at
    skew, within = (most + least) / 2, max((most - least) / 2, 0.0)
    return Clock(
        epoch_s=first, skew_s=round(skew, 3), within_s=round(within, 3), synchronized=known
    )


def _epoch(text: str) -> float | None:
    """Return seconds since 1970; busybox prints no fraction, or its format as it is."""
    match = re.match(r"\d{1,12}(\.\d+)?(?!\d)", text.strip())
    return float(match[0]) if match else None
