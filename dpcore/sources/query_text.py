"""Query texts: of a spec's SQL, only one query whose functions merely compute reaches a server.

A text is cut into tokens by the rules of its server, and what these could cut in two ways is
refused. Then whatever is before a parenthesis is a word of the grammar or the name of a
function, so that every name that is not on a list is refused, whatever it means to the server. What
calls a function without such a name (an operator, a cast, a view) is beyond any text: servers are
asked about it, and bound also (`dpcore.sources.sql`).
"""

import re

from dpcore.errors import SpecError, need

WAY = "let the owner of the database make a view that does it, and select from the view"

# Words of the grammar and of types that stand before a parenthesis.
_GRAMMAR = """
    all and any array as asc between by case cast check collate cross cube desc distinct else
    end escape except exists extract fetch filter first for from full glob group grouping having
    ilike in inner intersect is isnull join lateral left like limit materialized natural next
    not notnull offset on only or order outer over partition recursive regexp right rollup row
    rows select sets similar some symmetric table then to union using values variadic when where
    window with within zone
    bigint bit boolean bpchar char character date dec decimal double float int integer interval
    nchar numeric precision real smallint text time timestamp timestamptz varbit varchar varying
    bool float4 float8 int2 int4 int8
"""
# What depends on its arguments, and on the clock, alone; of servers of any age.
_COMPUTING = """
    abs acos acosd acosh asin asind asinh atan atan2 atan2d atand atanh cbrt ceil ceiling cos cosd
    cosh cot cotd degrees div erf erfc exp factorial floor gcd lcm ln log log10 log2 min_scale mod
    pi pow power radians round scale sign sin sind sinh sqrt tan tand tanh trim_scale trunc
    width_bucket coalesce greatest if ifnull iif least likelihood likely nullif num_nonnulls
    num_nulls
    typeof unlikely zeroblob
    ascii bit_count bit_length btrim casefold char_length character_length chr concat concat_ws
    convert_from convert_to crc32 crc32c decode encode format get_bit get_byte hex initcap instr
    length lower lpad ltrim md5 normalize octet_length overlay position printf quote quote_ident
    quote_literal quote_nullable regexp_count regexp_instr regexp_like regexp_match regexp_matches
    regexp_replace regexp_split_to_array regexp_split_to_table regexp_substr repeat replace reverse
    rpad rtrim sha224 sha256 sha384 sha512 soundex split_part starts_with string_to_array
    string_to_table strpos substr substring to_hex to_tsvector translate trim unhex unicode
    unistr upper
    age current_date current_time current_timestamp date_add date_bin date_part date_subtract
    date_trunc datetime isfinite julianday justify_days justify_hours justify_interval localtime
    localtimestamp make_date make_interval make_time make_timestamp make_timestamptz now
    statement_timestamp strftime
    timediff timezone to_char to_date to_number to_timestamp unixepoch
    array_agg array_append array_cat array_dims array_fill array_length array_lower array_ndims
    array_position array_positions array_prepend array_remove array_replace array_to_string
    array_upper cardinality generate_series generate_subscripts trim_array unnest
    datemultirange daterange int4multirange int4range int8multirange int8range isempty lower_inc
    lower_inf nummultirange numrange range_agg range_intersect_agg range_merge tsmultirange tsrange
    tstzmultirange tstzrange upper_inc upper_inf
    any_value avg bit_and bit_or bit_xor bool_and bool_or corr count covar_pop covar_samp every
    group_concat
    max median min mode percentile percentile_cont percentile_disc regr_avgx regr_avgy
    regr_count regr_intercept
    regr_r2 regr_slope regr_sxx regr_sxy regr_syy stddev stddev_pop stddev_samp string_agg sum total
    var_pop var_samp variance
    cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank
    row_number
    -> ->> array_to_json json json_agg json_array json_array_elements json_array_elements_text
    json_array_length json_build_array json_build_object json_each json_each_text json_exists
    json_extract json_extract_path json_extract_path_text json_group_array json_group_object
    json_insert json_object json_object_agg json_object_keys json_patch json_query json_quote
    json_remove json_replace json_set json_strip_nulls json_tree json_type json_typeof json_valid
    json_value jsonb_agg jsonb_array_elements jsonb_array_elements_text jsonb_array_length
    jsonb_build_array jsonb_build_object jsonb_each jsonb_each_text jsonb_extract
    jsonb_extract_path jsonb_extract_path_text jsonb_object jsonb_object_agg jsonb_object_keys
    jsonb_path_exists
    jsonb_path_match jsonb_path_query jsonb_path_query_array jsonb_path_query_first jsonb_pretty
    jsonb_set jsonb_strip_nulls jsonb_to_record jsonb_to_recordset jsonb_typeof json_to_record
    json_to_recordset row_to_json to_json to_jsonb
"""
FUNCTIONS = frozenset(f"{_GRAMMAR} {_COMPUTING}".split())
"""What may be before a parenthesis."""

_FIRST = ("select", "with", "values", "table")
_CHANGES = re.compile(
    r" into |(?:\)|(?:as|materialized) \() (?:insert|update|delete|merge) "
    r"| (?:for|key) (?:update|share) "
)
_BODY = re.compile(r"as (?:(?:not )?materialized )?\( (?:select|with|table|values \() ")
_HIGH = r"\x80-\ud7ff\ue000-\U0010ffff"
_SURROGATES = re.compile("[\ud800-\udfff]")
_SHARED = "|".join(
    (
        # A lone carriage return ends a comment on one server, and comments nest there.
        r"(?P<blank>[ \t\r\n\f]+|--[^\r\n]*(?=\r?\n|\r?\Z)|/\*(?:(?!/\*|\*/).)*\*/)",
        r"(?P<text>'(?:[^']|'')*')",
        r'(?P<quoted>"(?:[^"]|"")*")',
        rf"(?P<word>[A-Za-z_{_HIGH}][A-Za-z0-9_${_HIGH}]*)",
        r"(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)",
        r"(?P<operator>(?:(?!--|/\*)[-+*/<>=~!@#%^&|?:`])+)",
        r"(?P<mark>[(),.;\[\]])",
    )
)

# Names that are written with escapes are `other`: they could be any name.
POSTGRESQL = re.compile(
    rf"(?![uU]&[\"'])(?:(?P<escaped>[eE]'(?:[^'\\]|\\.|'')*')"
    rf"|(?P<dollar>\$(?P<tag>(?:[A-Za-z_{_HIGH}][A-Za-z0-9_{_HIGH}]*)?)\$.*?\$(?P=tag)\$)"
    rf"|{_SHARED})|(?P<other>.)",
    re.DOTALL,
)
SQLITE = re.compile(rf"(?P<backtick>`(?:[^`]|``)*`|\[[^]]*\])|{_SHARED}|(?P<other>.)", re.DOTALL)


def query_text(sql: str, dialect: re.Pattern[str]) -> tuple[str, set[str], set[str]]:
    """Return a text without the semicolons at its end, with the names of functions in it, and those
    behind a point, where a server may see a function of the row before it.

    Args:
        dialect: How a server cuts a text into tokens: `POSTGRESQL` or `SQLITE`.

    Raises:
        SpecError: it is not one query of listed functions, or could be read in two ways.
    """
    tokens = _tokens(sql, dialect)
    while tokens and tokens[-1][:2] == ("mark", ";"):
        sql = sql[: tokens.pop()[2]]
    # Only of words in no quotes: no one has to guess whether a server sees a name or its grammar.
    words = (name if kind in ("word", "mark") else "" for kind, name, _ in tokens)
    names = ["(", *words, ")"]  # a text in parentheses ends no other that it is written into
    partners = _partners(names)
    is_closed = partners.get(0) == len(names) - 1
    first = next(name for name in names if name != "(")
    need(
        is_closed and first in _FIRST and ";" not in names and not _CHANGES.search(" ".join(names)),
        SpecError,
        "needs one query (SELECT, WITH ... SELECT or VALUES), which changes, locks and stores "
        f"nothing: nothing else is sent to a server; {WAY}",
        "sql",
    )
    called, members = set[str](), set[str]()
    for place, (kind, name, _) in enumerate(tokens, start=1):
        before, behind = names[place - 1], names[place + 1]
        is_name = kind in ("word", "quoted")
        is_own = is_name and dialect is POSTGRESQL and name.startswith("pg_")
        need(
            not is_own or (name, behind) == ("pg_catalog", "."),
            SpecError,
            f"names {name!r}, which is the server's own: {WAY}",
            "sql",
        )
        is_called = is_name and behind == "(" and not _is_table(names, place, partners)
        is_listed = name in FUNCTIONS and (before != "." or names[place - 2] == "pg_catalog")
        need(
            is_listed or not is_called,
            SpecError,
            f"calls {name!r}, which is not among the functions that a query is sent with, as they "
            f"only compute; {WAY} (or write AS before the name, if it is a table's)",
            "sql",
        )
        called |= {name} if is_called else set()
        members |= {name} if is_name and before == "." else set()
    return sql, called, members


def require_query(sql: str) -> None:
    """Refuse a text that no server would be sent.

    Raises:
        SpecError: with the reason.
    """
    try:
        query_text(sql, SQLITE)
    except SpecError:
        query_text(sql, POSTGRESQL)


def _tokens(sql: str, dialect: re.Pattern[str]) -> list[tuple[str, str, int]]:
    """Kind, name and place of each; words in small letters, as servers fold ASCII only."""
    tokens = [("", "", 0)]
    for match in dialect.finditer(sql):
        kind, name = str(match.lastgroup), match.group()
        # What continues a text with escapes has escapes, too; half a character is none.
        is_doubtful = kind == "other" or (kind, tokens[-1][0]) == ("text", "escaped")
        need(
            not is_doubtful and not _SURROGATES.search(name),
            SpecError,
            "has quotes, comments or characters that may mean two things",
            "sql",
        )
        if kind == "quoted":
            name = name[1:-1].replace('""', '"')
        elif kind != "blank":
            name = name.encode().lower().decode()
        tokens += [(kind, name, match.start())] if kind != "blank" else []
    return tokens[1:]


def _partners(names: list[str]) -> dict[int, int]:
    """Places of parentheses by those of their partners, where each has one."""
    partners, open_places = dict[int, int](), list[int]()
    for place, name in enumerate(names):
        if name == "(":
            open_places.append(place)
        elif name == ")" and open_places:
            partners[place] = open_places.pop()
            partners[partners[place]] = place
    return partners


def _is_table(names: list[str], place: int, partners: dict[int, int]) -> bool:
    """Return whether a name before a parenthesis is that of a type, or of a table with its
    columns.
    """
    before = names[place - 1]
    if before == ")":  # FROM (query) name (columns), but not DISTINCT ON (x) name (y)
        return names[partners[place - 1] - 1] != "on"
    words = " ".join(names[partners[place + 1] + 1 :][:7])
    is_of_with = before in ("with", "recursive", ",") and _BODY.match(f"{words} ")
    return before == "as" or bool(is_of_with)
