"""The inventory: who is in it, by which words it is named, and each mistake as one clear line."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent import settings
from agent.goal_parts import Host
from agent.inventory import Inventory, InventoryError, find, found, load, one, select
from agent.name_ranges import expand, fold

FLEET = """\
defaults:
  models: /srv/models
  env: {NCCL_DEBUG: INFO, OMP_NUM_THREADS: 8}
hosts:
  spark-1:
    address: me@10.0.0.11
    roles: [head]
    nic: enp1s0f0np0
    env: {NCCL_DEBUG: WARN}
    python: /opt/python3.12
    container: trainer
  spark-2: me@[fe80::12]:2222
  gpu[01-04]:
    address: lab@{name}.lan:22{n}
    roles: worker
  rack[1-2]-node[1,3]: "rack{n}.{n2}.lan"
  box[1-2]: 10.0.0.[8-9]
  plain:
groups:
  sparks: [spark-1, spark-2]
  first: "gpu[01-02]"
  most: ["@sparks", "@worker", plain]
"""
SECRET = "hf_canary0123456789abcdef"  # noqa: S105 - a canary


def inventory(folder: Path, text: str = FLEET) -> Inventory:
    path = folder / "hosts.yaml"
    path.write_text(text, encoding="utf-8")
    return load(path)


def refused(folder: Path, text: str) -> str:
    with pytest.raises(InventoryError) as caught:
        inventory(folder, text)
    said = str(caught.value)
    assert said.startswith(f"{folder}/hosts.yaml")
    assert "\n" not in said
    return said


def names(chosen: tuple[object, ...]) -> str:
    return " ".join(str(getattr(member, "name", member)) for member in chosen)


def test_what_is_said_of_a_host(tmp_path: Path) -> None:
    spark = inventory(tmp_path).members["spark-1"]
    assert spark.host == Host(
        name="spark-1",
        address="me@10.0.0.11",
        container="trainer",
        python="/opt/python3.12",
        models="/srv/models",
    )
    assert (spark.roles, spark.nic) == (("head",), "enp1s0f0np0")
    assert spark.env == {"NCCL_DEBUG": "WARN", "OMP_NUM_THREADS": "8"}
    assert spark.listed


def test_addresses(tmp_path: Path) -> None:
    at = {member.name: member.address for member in inventory(tmp_path).members.values()}
    assert at == {
        "spark-1": "me@10.0.0.11",
        "spark-2": "me@[fe80::12]:2222",
        "gpu01": "lab@gpu01.lan:2201",
        "gpu02": "lab@gpu02.lan:2202",
        "gpu03": "lab@gpu03.lan:2203",
        "gpu04": "lab@gpu04.lan:2204",
        "rack1-node1": "rack1.1.lan",
        "rack1-node3": "rack1.3.lan",
        "rack2-node1": "rack2.1.lan",
        "rack2-node3": "rack2.3.lan",
        "box1": "10.0.0.8",
        "box2": "10.0.0.9",
        "plain": "plain",
    }


def test_an_address_for_all(tmp_path: Path) -> None:
    made = inventory(tmp_path, "defaults: {address: 'lab@{name}.lan'}\nhosts: {a: , b: {}, c: x}")
    assert [it.address for it in made.members.values()] == ["lab@a.lan", "lab@b.lan", "x"]


def test_parts_may_be_empty(tmp_path: Path) -> None:
    assert not inventory(tmp_path, "hosts:\ngroups:\ndefaults:").members


def test_this_machine_may_be_in_it(tmp_path: Path) -> None:
    made = inventory(tmp_path, "hosts: {local: , here: local}")
    assert [it.host.is_remote for it in made.members.values()] == [False, False]


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        (["spark-1"], "spark-1"),
        (["spark-2,plain", "spark-2"], "spark-2 plain"),
        (["@sparks"], "spark-1 spark-2"),
        (["@first"], "gpu01 gpu02"),
        (["@head", "gpu[03-04]"], "spark-1 gpu03 gpu04"),
        (["@most"], "spark-1 spark-2 gpu01 gpu02 gpu03 gpu04 plain"),
        (["gpu[01,03]"], "gpu01 gpu03"),
        (["gpu[01,03],box1"], "gpu01 gpu03 box1"),
        (["local", "u@h:2222"], "local u@h:2222"),
        (["u@n[8-10].lan:22"], "u@n8.lan:22 u@n9.lan:22 u@n10.lan:22"),
        (["u@[::1]:22"], "u@[::1]:22"),
        (["elsewhere"], "elsewhere"),
        ([], ""),
    ],
)
def test_words_name_hosts(tmp_path: Path, words: list[str], chosen: str) -> None:
    made = inventory(tmp_path)
    assert names(select(words, made)) == chosen
    assert len(select(["@all"], made)) == 13


def test_hosts_without_an_inventory() -> None:
    chosen = select(["local", "n[01-02]", "u@h:2222"], None)
    assert [it.address for it in chosen] == ["local", "n01", "n02", "u@h:2222"]
    assert not any(it.listed for it in chosen)


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("@spraks", "unknown group `spraks`; did you mean `sparks`?"),
        ("gpu[03-05]", "gpu[03-05]: there is no gpu05"),
        ("gpu[5-3]", "gpu[5-3]: 5-3 is an empty range; the smaller number comes first"),
        ("gpu[]", "gpu[]: an empty range; write [1-16], [01-16] or [1,3,5-7]"),
        ("gpu[a-c]", "gpu[a-c]: `a-c` is no number and no range"),
        ("gpu[1-2", "gpu[1-2: a bracket is missing"),
        ("gpu1-2]", "a bracket is missing"),
        ("gpu[1-5000]", "gpu[1-5000]: more than 4096 names"),
        ("a[1-4096],b[1-2]", "more than 4096 hosts are named"),
        ("n[1-99]-[1-99]", "n[1-99]-[1-99]: more than 4096 names"),
        ("gpu[1-99999999999999999999]", "is no number and no range"),
        ("gpu[1,1]", "gpu[1,1]: 1 stands twice in it"),
        ("gpu[01-100]", "gpu[01-100]: 01 and 100 have different widths"),
        ("gpu[0-08]", "gpu[0-08]: 0 and 08 have different widths"),
        ("-oProxyCommand=x", "'-oProxyCommand=x' is no address of a host"),
        ("a;b", "'a;b' is no address of a host"),
        ("u@h:99999", "'u@h:99999' is no address of a host"),
        ("", "'' is no address of a host"),
    ],
)
def test_words_that_name_nothing(tmp_path: Path, word: str, says: str) -> None:
    with pytest.raises(InventoryError) as caught:
        select([word], inventory(tmp_path))
    assert says in str(caught.value)


def test_one_host_is_wanted(tmp_path: Path) -> None:
    made = inventory(tmp_path)
    assert one("spark-1", made).address == "me@10.0.0.11"
    with pytest.raises(InventoryError, match="@sparks: 2 hosts; name one"):
        one("@sparks", made)


def test_a_group_needs_an_inventory() -> None:
    with pytest.raises(InventoryError, match="@x: a group needs an inventory, and there is none"):
        select(["@x"], None)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("hsts: {}", ": unknown key `hsts`; did you mean `hosts`?"),
        ("hosts: {a: {adress: x}}", ": unknown key `hosts.a.adress`; did you mean `address`?"),
        ("defaults: {modles: /x}", ": unknown key `defaults.modles`; did you mean `models`?"),
        ("all: {hosts: }", ": unknown key `all`; known: defaults, groups, hosts"),
        ("- a", ": an inventory is a mapping of keys; see docs/hosts.md"),
        ("hosts: [a]", ": hosts: names are needed, each with what it is"),
        ("groups: x", ": groups: names are needed, each with what it is"),
        ("hosts: {a: 5}", ": hosts.a: an address is needed, or keys with values"),
        ("hosts: {a: {roles: 5}}", ": hosts.a.roles: input should be a valid list (got 5)"),
        ("hosts: {a: x, a: y}", ", line 1: the key `a` stands twice"),
        ("hosts: {'g[1-2]': , g2: y}", ": hosts.g2: g2 is there twice"),
        ("hosts: {1: x}", ": hosts: YAML takes a name for `1`; put quotes around it"),
        ("hosts: {no: x}", ": hosts: YAML takes a name for `False`; put quotes around it"),
        ("hosts: {a b: x}", ": hosts.a b: a name begins with a letter or digit"),
        ("hosts: {local: x}", ": hosts.local: `local` is this machine; choose another name"),
        ("hosts: {'g[2-1]': }", ": hosts.g[2-1]: 2-1 is an empty range"),
        ("hosts: {'g[1-9999]': }", ": hosts.g[1-9999]: more than 4096 names"),
        ("hosts: {'g[1-2]': '10.0.0.[1-3]'}", "g[1-2] is 2 hosts and 10.0.0.[1-3] 3 addresses"),
        ("hosts: {a: 'h{n}'}", ": hosts.a: h{n}: {n} is not known here; there is {name}"),
        ("hosts: {'g[1-2]': 'h{n3}'}", "{n3} is not known here; there is {name}, {n}"),
        ("hosts: {a: -oX}", ": hosts.a: '-oX' is no address of a host"),
        ("hosts: {a: {models: rel}}", ": hosts.a: models: string should match pattern"),
        ("hosts: {a: {nic: a/b}}", ": hosts.a.nic: a network device's name is needed"),
        ("hosts: {a: {env: {A: no}}}", ": hosts.a.env.A: a text or a whole number is needed"),
        ("hosts: {a: {env: {A B: x}}}", ": hosts.a.env: `A B` is no name"),
        ("groups: {g: b}", ": groups.g: unknown host `b`"),
        ("hosts: {spark-1: }\ngroups: {g: sparx-1}", "`sparx-1`; did you mean `spark-1`?"),
        ("groups: {g: '@h'}", ": groups.g: unknown group `h`; known: all, g"),
        ("groups: {g: '@h', h: '@g'}", ": groups.g: it is part of itself: g > h > g"),
        ("groups: {all: []}", ": groups.all: `@all` is every host; choose another name"),
        ("hosts: {a: {roles: g}}\ngroups: {g: a}", ": groups.g: `@g` is a role, too"),
        ("groups: {g: [n[1-2]]}", ", line 1: expected ',' or ']', but got '['; put quotes around"),
        ("groups: {g: @h}", "character '@' that cannot start any token; put quotes around"),
    ],
)
def test_a_mistake_is_one_clear_line(tmp_path: Path, text: str, says: str) -> None:
    assert says in refused(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (f"hosts: {{a: {{env: {{X: {SECRET}}}}}}}", "hosts.a.env.X"),
        ("hosts: {a: {env: {HF_TOKEN: canary-4711}}}", "hosts.a.env.HF_TOKEN"),
        ("defaults: {env: {DB_PASSWORD: canary-4711}}", "defaults.env.DB_PASSWORD"),
        ("hosts: {a: {env: {PROXY: 'http://u:canary@proxy:80'}}}", "hosts.a.env.PROXY"),
        ("hosts: {a: 'me:canary@10.0.0.1'}", "hosts.a"),
        ("hosts: {a: {address: 'ssh://me:canary@10.0.0.1'}}", "hosts.a.address"),
        ("hosts: {a: {password: canary-4711}}", "hosts.a.password"),
        (f"hosts: {{{SECRET}: x}}", "hosts.…"),
        (f"groups: {{g: [{SECRET}]}}", "groups.g.0"),
    ],
)
def test_no_secret_is_kept_or_shown(tmp_path: Path, text: str, place: str) -> None:
    said = refused(tmp_path, text)
    assert f": {place}: looks like a secret; no secrets here: set it on the host, or in" in said
    assert "canary" not in said


def test_values_that_only_sound_secret(tmp_path: Path) -> None:
    text = "hosts: {a: {env: {TOKENIZERS_PARALLELISM: 'false', MAX_TOKENS: 4096, KEY_FILE: /k}}}"
    assert len(inventory(tmp_path, text).members["a"].env) == 3


def test_a_typed_password_is_not_repeated() -> None:
    with pytest.raises(InventoryError, match="holds a password; log in with a key") as caught:
        select(["me:canary@host"], None)
    assert "canary" not in str(caught.value)


def test_where_it_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find(None) is None
    assert found(None) is None
    own = settings.config_file().parent / "hosts.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("hosts: {own: }")
    assert find(None) == own
    Path("hosts.yaml").write_text("hosts: {near: }")
    assert find(None) == Path("hosts.yaml")
    other = tmp_path / "fleet.yaml"
    with pytest.raises(InventoryError, match=r"fleet.yaml: no such inventory"):
        find(other)
    other.write_text("hosts: {far: }")
    monkeypatch.setenv("BRINGUP_INVENTORY", str(other))
    made = found(settings.load().inventory)
    assert made is not None
    assert [*made.members] == ["far"]
    other.write_bytes(b"\xff")
    with pytest.raises(InventoryError, match="cannot read the inventory file: not UTF-8 text"):
        found(other)


@pytest.mark.parametrize(
    ("words", "folded"),
    [
        ("", ""),
        ("a", "a"),
        ("spark-1", "spark-1"),
        ("gpu01 gpu02 gpu03 gpu07", "gpu[01-03,07]"),
        ("gpu9 gpu10 gpu8", "gpu[8-10]"),
        ("gpu09 gpu10", "gpu[09-10]"),
        ("gpu10 gpu09", "gpu10, gpu09"),
        ("n1 x n2 y", "n[1-2], x, y"),
        ("n1 n1", "n1"),
        ("u@h:2201 u@h:2202", "u@h:[2201-2202]"),
        ("u@[::1]:22 u@[::1]:24", "u@[::1]:[22,24]"),
        ("n001 n01", "n001, n01"),
        ("a1b a2b a3c", "a[1-2]b, a3c"),
        ("h12345678901 h12345678902", "h12[345678901-345678902]"),
    ],
)
def test_names_in_few_words(words: str, folded: str) -> None:
    said = fold(words.split())
    assert said == folded
    back = [name for word in said.split(", ") if word for name in expand(word)]
    assert sorted(back) == sorted(set(words.split()))
