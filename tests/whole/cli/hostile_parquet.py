"""Parquet files of 40 records that are wrong in every way a writer, a disk or a stranger has."""

import datetime as dt
import io
import random
from decimal import Decimal

import pyarrow as pa
from pyarrow import feather, parquet
from pyarrow.parquet import encryption

RECORDS = 40
SECRETS = [f"31.41{i:02d}7" for i in range(RECORDS)]  # values of records; no message may show one
NAMES = ["a", "b", "c", "d", "y"]


def table():
    """What the spec declares."""
    rows = range(RECORDS)
    columns = [
        pa.array([float(secret) for secret in SECRETS]),
        pa.array([i / 100 for i in rows]),
        pa.array([("no", "yes")[i % 2] for i in rows]),
        pa.array([1 + i % 3 for i in rows]),
        pa.array([-i / 100 for i in rows]),
    ]
    return pa.Table.from_arrays(columns, NAMES)


def columns_of_other_types():
    """Columns that hold the secrets in every type that a file of Parquet knows, or next to them."""
    days = [dt.datetime(2020, 1, 1 + i % 28, 3, 14, 15) for i in range(RECORDS)]
    numbers = [float(secret) for secret in SECRETS]
    listed = [[secret] * (i % 4) for i, secret in enumerate(SECRETS)]
    yield pa.array(SECRETS)
    yield pa.array(SECRETS).cast(pa.large_string())
    yield pa.array(SECRETS).cast(pa.string_view())
    yield pa.array(SECRETS).dictionary_encode()
    yield pa.array([secret.encode() for secret in SECRETS])
    yield pa.array([secret.encode() for secret in SECRETS], pa.binary(8))
    yield pa.array([b"\xff\xfe" + secret.encode() for secret in SECRETS]).view(pa.string())
    yield pa.array(["x" * 200_000 + secret for secret in SECRETS])
    yield pa.array([secret + "\0\n\x1b[31m" for secret in SECRETS])
    yield pa.array([Decimal(secret) for secret in SECRETS])
    yield pa.array([Decimal(secret) for secret in SECRETS], pa.decimal256(60, 30))
    yield pa.array(numbers).cast(pa.float16())
    yield pa.array(numbers).cast(pa.float32())
    yield pa.array(numbers).dictionary_encode()
    yield pa.array([float("nan"), float("inf"), -0.0, 1e300] * 10)
    yield pa.array([None, *numbers[1:]])
    yield pa.nulls(RECORDS)
    yield pa.nulls(RECORDS, pa.string())
    yield pa.array([2**64 - 1 - i for i in range(RECORDS)], pa.uint64())
    yield pa.array([i % 2 == 0 for i in range(RECORDS)])
    yield pa.array([bool(i % 2) or None for i in range(RECORDS)])
    yield pa.array(range(RECORDS), pa.int8())
    yield pa.array(listed)
    yield pa.array(listed, pa.large_list(pa.string()))
    yield pa.array([[n, n] for n in numbers], pa.list_(pa.float64(), 2))
    yield pa.array([{SECRETS[0]: n} for n in numbers])
    yield pa.array([[(secret, 1)] for secret in SECRETS], pa.map_(pa.string(), pa.int64()))
    yield pa.array([{"v": {"v": [{"v": n}]}} for n in numbers])
    yield pa.array([day.date() for day in days])
    yield pa.array(days, pa.timestamp("ns"))
    for zone in ("UTC", "Europe/Zurich", "+03:14", "nowhere/31.4159"):
        yield pa.array(days, pa.timestamp("us")).cast(pa.timestamp("us", zone))
    yield pa.array([314159 + i for i in range(RECORDS)], pa.time32("ms"))
    yield pa.array([314159 + i for i in range(RECORDS)], pa.time64("ns"))
    yield pa.array([314159 + i for i in range(RECORDS)], pa.duration("s"))
    yield pa.array([0, -(2**53)] * 20, pa.timestamp("s"))


COLUMNS = [*columns_of_other_types()]


class Keys(encryption.KmsClient):
    """Keys of an encrypted file, under no key."""

    def __init__(self, connection):
        super().__init__()

    def wrap_key(self, key, name):
        return key.hex().encode()

    def unwrap_key(self, key, name):
        return bytes.fromhex(key.decode())


def encrypted(rng):
    """Its cells, and perhaps its footer."""
    factory = encryption.CryptoFactory(Keys)
    config = encryption.EncryptionConfiguration(
        footer_key="k", column_keys={"k": NAMES[: rng.randrange(1, 6)]},
        plaintext_footer=rng.random() < 0.5,
    )  # fmt: skip
    return factory.file_encryption_properties(encryption.KmsConnectionConfig(), config)


def written(rng, made, **options):
    """A file's bytes, by one of many layouts."""
    file = io.BytesIO()
    layout = {
        "compression": rng.choice(["none", "snappy", "gzip", "zstd", "brotli", "lz4"]),
        "version": rng.choice(["1.0", "2.4", "2.6"]),
        "row_group_size": rng.choice([1, 7, 1000]),
        "use_dictionary": rng.random() < 0.5,
        "write_statistics": rng.random() < 0.5,
        "data_page_version": rng.choice(["1.0", "2.0"]),
        "data_page_size": rng.choice([1, 1 << 20]),
        "store_schema": rng.random() < 0.7,
    }
    try:
        parquet.write_table(made, file, **{**layout, **options})
    except (pa.ArrowException, OSError, ValueError):  # what this version cannot write
        file = io.BytesIO()
        parquet.write_table(made, file, **options)
    return file.getvalue()


def changed_columns(rng, made):
    for _ in range(rng.choice([1, 1, 2, 5])):
        made = made.set_column(
            (place := rng.randrange(made.num_columns)), NAMES[place], rng.choice(COLUMNS)
        )
    return made


def changed_shape(rng, made):
    """Columns and records that are missing, doubled or too many."""
    column = made.column(rng.randrange(5))
    changes = (
        lambda: made.append_column(rng.choice(NAMES), column),
        lambda: made.rename_columns([name.upper() for name in NAMES]),
        lambda: made.rename_columns(["a"] * 5),
        lambda: made.rename_columns(["", "b\n", "\u202e", "x" * 100_000, SECRETS[0]]),
        lambda: made.drop_columns([rng.choice(NAMES)]),
        lambda: made.select([]),
        lambda: made.slice(0, rng.choice([0, 1, RECORDS - 1])),
        lambda: pa.concat_tables([made] * rng.choice([2, 500])),
        lambda: pa.Table.from_arrays(
            [*made.columns, *[column] * 1000], [*NAMES, *map(str, range(1000))]
        ),
        lambda: made.replace_schema_metadata({"pandas": "{", "ARROW:schema": SECRETS[0]}),
    )
    return rng.choice(changes)()


def changed_bytes(rng, raw):
    """What a disk, a network or a stranger makes of a file."""
    footer = int.from_bytes(raw[-8:-4], "little") + 8
    end = rng.choice([len(raw), footer, footer, 8])  # the whole file, its footer, its length
    how = rng.random()
    if how < 0.25:
        return raw[: rng.randrange(len(raw))]
    if how < 0.35:
        return raw[rng.randrange(len(raw)) :]
    if how < 0.45:
        return raw[:-8] + rng.choice([0, 1, 2**31 - 1, 2**32 - 1]).to_bytes(4, "little") + raw[-4:]
    if how < 0.5:
        return raw[:-4] + rng.choice([b"PARE", b"PAR2", b"\0\0\0\0"])
    codes = bytearray(raw)
    for _ in range(rng.choice([1, 1, 3, 40])):
        codes[len(codes) - 1 - rng.randrange(end)] = rng.randrange(256)
    return bytes(codes)


def others():
    """Files of other formats, and without records."""
    yield b""
    yield b"PAR1"
    yield b"PAR1PAR1"
    yield b"a,b,c,d,y\n" + SECRETS[0].encode() + b",0,no,1,0\n"
    file = io.BytesIO()
    feather.write_feather(table(), file)
    yield file.getvalue()
    file = io.BytesIO()
    with parquet.ParquetWriter(file, table().schema) as writer:
        for size in (0, 3, 0, 0, 37, 0):
            writer.write_table(table().slice(0, size))
    yield file.getvalue()


def files(seed):
    """Files without end; the first is right."""
    rng = random.Random(seed)
    yield written(rng, table())
    yield from others()
    while True:
        how = rng.random()
        if how < 0.35:
            yield written(rng, changed_columns(rng, table()))
        elif how < 0.5:
            yield written(rng, changed_shape(rng, table()))
        elif how < 0.55:
            yield written(rng, table(), encryption_properties=encrypted(rng))
        else:
            made = table() if rng.random() < 0.7 else changed_columns(rng, table())
            yield changed_bytes(rng, written(rng, made))
