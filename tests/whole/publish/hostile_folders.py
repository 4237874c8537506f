"""Run folders that a stranger may hand over: each changes a copy of an honest one."""

import io
import json
import os
import socket
import struct
import zipfile

import msgspec
import numpy as np

from dpcore.published.lock import Lock

OUTSIDE = "/etc/passwd"
MANY = 1_000_000


def lock_of(public):
    return json.loads((public / "spec.lock.json").read_text())


def edited(change):
    """A folder whose lock was changed, with the digest of the new content."""

    def spoil(public):
        content = lock_of(public)
        change(content)
        lock = msgspec.convert(content, Lock)
        (public / "spec.lock.json").write_bytes(lock.digested().encode())

    return spoil


def at(*keys, value):
    """A lock with another value at a path of keys."""

    def change(content):
        for key in keys[:-1]:
            content = content[key]
        content[keys[-1]] = value

    return edited(change)


DOMAIN = ("spec", "data", "domain")
RELEASE = ("spec", "release")


def text(name, content):
    return lambda public: (public / name).write_bytes(content)


def link(name, target):
    def spoil(public):
        (public / name).unlink(missing_ok=True)
        (public / name).symlink_to(target)

    return spoil


def pipe(name):
    def spoil(public):
        (public / name).unlink()
        os.mkfifo(public / name)

    return spoil


def listening(name):
    def spoil(public):
        (public / name).unlink()
        here = os.getcwd()
        os.chdir(public)  # the path of a socket is short
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(name)
        os.chdir(here)

    return spoil


def folder(name):
    def spoil(public):
        (public / name).unlink()
        (public / name).mkdir()

    return spoil


def long(name):
    def spoil(public):
        with (public / name).open("ab") as file:
            file.truncate(1 << 40)  # a hole: it takes no room on this disk

    return spoil


def linked_channel(public):
    public.rename(public.with_name("elsewhere"))
    public.symlink_to(public.with_name("elsewhere"))


def channel_elsewhere(public):
    public.rename(public.with_name("there"))
    public.symlink_to("/etc")


def linked_operator(public):
    public.rename(public.with_name("rehearsal"))
    public.with_name("operator").symlink_to(public.parent)


def archive(members, kind=zipfile.ZIP_STORED):
    def spoil(public):
        with zipfile.ZipFile(public / "answers.npz", "w", kind) as file:
            for name, content in members():
                file.writestr(name, content)

    return spoil


def array(shape, descr="<f8", content=b"12345678"):
    file = io.BytesIO()
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + content


def header(content):
    """An array whose header is any text."""
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(content)) + content


def member(content, name="release.000000.x.npy"):
    return archive(lambda: [(name, content)])


def overlapping(public):
    """Many entries of the directory represent the same bytes."""
    path = public / "answers.npz"
    with zipfile.ZipFile(path) as file:
        info = file.infolist()[0]
        content = file.read(info)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("release.000000.x.npy", content)
        file.filelist.extend(file.filelist * 40)


def cut(name):
    def spoil(public):
        path = public / name
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    return spoil


def statement(key, value):
    """Another word in the guarantee."""

    def spoil(public):
        path = public / "guarantee.json"
        content = json.loads(path.read_text()) | {key: value}
        path.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")

    return spoil


def many_names(public):
    for number in range(10_001):
        (public / f"{number}.txt").touch()


def many_releases(content):
    entry = content["spec"].pop("release")
    names = [f"r{number}" for number in range(5_000)]
    content["spec"]["releases"] = [{**entry, "name": name} for name in names]
    queries = next(iter(content["plan"]["releases"].values()))
    content["plan"]["releases"] = dict.fromkeys(names, queries)
    content["plan"]["public"] = dict.fromkeys(names, next(iter(content["plan"]["public"].values())))


def nested(depth):
    value = 1
    for _ in range(depth):
        value = {"a": value}
    return value


def deep(public):
    content = b'{"format": 2, "spec": ' + b'{"a": ' * MANY + b"1" + b"}" * MANY + b"}"
    (public / "spec.lock.json").write_bytes(content)


FILES = {"categories_from": OUTSIDE}
HARMLESS = {
    # nothing follows from these, and no reader looks at what they name
    "source elsewhere", "source above", "source of parquet", "source that is loaded",
    "long key",
}  # fmt: skip
RULE = {"rule": "random_features/theorem_1", "n": 10}
HOSTILE = {
    # keys that name a file, or might
    "categories of a column": at(*DOMAIN, "columns", "age", value=FILES),
    "categories of the target": at(*DOMAIN, "target", value=FILES),
    "categories of a group": at(*DOMAIN, "groups", value={"g": FILES}),
    "categories next to a list": at(*DOMAIN, "columns", "age", value=FILES | {"categories": ["x"]}),
    "categories of a release": at(*RELEASE, "categories_from", value=OUTSIDE),
    "source elsewhere": at("spec", "data", "source", value=OUTSIDE),
    "source above": at("spec", "data", "source", value="../../../../etc/passwd"),
    "source of parquet": at("spec", "data", "source", value="/etc/"),
    "source that is loaded": at("spec", "data", "source", value="sklearn:load_files"),
    "source of a database": at(
        "spec", "data", "source",
        value={"sql": "select readfile('/etc/passwd')", "connection": "sqlite:////etc/passwd"},
    ),
    "points elsewhere": at(*RELEASE, "predictions_at", value=OUTSIDE),
    "ledger elsewhere": at("spec", "ledger", value=OUTSIDE),
    "ledger next to": at("spec", "ledger", value="./../../../etc/passwd"),
    "learner that is a path": at(*RELEASE, "learner", value=OUTSIDE),
    "learner that is a module": at(*RELEASE, "learner", "name", value="os.path"),
    "features that are a path": at(*RELEASE, "learner", "features", value=OUTSIDE),
    "mechanism that is a path": at(*RELEASE, "mechanism", value=OUTSIDE),
    "accountant that is a path": at("spec", "accountant", value=OUTSIDE),
    "rule": at("spec", "budget", "epsilon", value=RULE),
    "unknown key": at("spec", "plugins", value=[OUTSIDE]),
    "lock that names a lock": at("spec", "lock", value=OUTSIDE),
    # entries that are no plain files
    "link to a file": link("spec.lock.json", OUTSIDE),
    "link to a device": link("guarantee.json", "/dev/zero"),
    "link to itself": link("answers.npz", "answers.npz"),
    "link to a sibling": link("answers.npz", "model.npz"),
    "link to a text": link("guarantee.txt", OUTSIDE),
    "link also": link("more.txt", OUTSIDE),
    "pipe for a lock": pipe("spec.lock.json"),
    "pipe for a guarantee": pipe("guarantee.json"),
    "pipe for answers": pipe("answers.npz"),
    "pipe for a model": pipe("model.npz"),
    "socket for a lock": listening("spec.lock.json"),
    "folder for answers": folder("answers.npz"),
    "link for the channel": linked_channel,
    "channel elsewhere": channel_elsewhere,
    "link for the operator": linked_operator,
    # entries of any size
    "long lock": long("spec.lock.json"),
    "long guarantee": long("guarantee.json"),
    "long answers": long("answers.npz"),
    "long model": long("model.npz"),
    "long text": long("guarantee.txt"),
    "many names": many_names,
    "many empty objects": text("spec.lock.json", b'{"spec": [' + b"{}," * 5_000_000 + b"1]}"),
    "many empty lists": text("guarantee.json", b'{"a": [' + b"[]," * 5_000_000 + b"1]}"),
    "many objects below the limit": at("spec", "a", value=[{"a": 1}] * 400_000),
    "deep lock": deep,
    "deep spec": at("spec", "a", value=nested(500)),
    "long number": text("spec.lock.json", b'{"format": ' + b"9" * MANY + b"}"),
    "long key": at("key", value=1 << 200),
    "long text in the spec": at(*RELEASE, "learner", "name", value="x" * 8_000_000),
    "many releases": edited(many_releases),
    "many records": at(*DOMAIN, "records", value=1 << 62),
    "many neurons": at(*RELEASE, "learner", value={"name": "ntk.central", "neurons": 10**12}),
    # archives
    "compressed": archive(
        lambda: [("release.000000.x.npy", bytes(200 << 20))], zipfile.ZIP_DEFLATED
    ),
    "many arrays": archive(lambda: [(f"release.{n:06d}.x.npy", b"") for n in range(9_000)]),
    "array elsewhere": member(array((1,)), "../../../../etc/passwd.npy"),
    "array of a vast shape": member(array((10**15,))),
    "array of vast items": member(array((1,), "<U500000000")),
    "array of no items": member(array((10**18,), "|S0", b"")),
    "array of objects": member(array((1,), "|O", b"\x80\x04cos\nsystem\n.")),
    "array of nested headers": member(header(b"(" * 9_000)),
    "array of odd headers": member(header(b"{'descr': '<f8', 'shape': (1,)\x00")),
    "overlapping": overlapping,
    "half an archive": cut("answers.npz"),
    # words
    "no guarantee in words": statement("not private", ["x" * 1000] * 1000),
    "premises in numbers": statement("premises", [[1]] * 1000),
    "ledger in words": statement("ledger", "x" * 100_000),
    "digest left as it was": lambda public: (public / "spec.lock.json").write_bytes(
        (public / "spec.lock.json").read_bytes().replace(b'"epsilon": ', b'"epsilon": 0', 1)
    ),
}  # fmt: skip
