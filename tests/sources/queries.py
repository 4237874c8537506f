"""Texts that a spec may send to a database, and texts that it may not: one of each kind.

`{out}` is a path in a temporary folder, to which a copy of a few synthetic rows would go.
"""


def _lines(text):
    """One text a line, in which two characters represent a line's end."""
    lines = text.strip().splitlines()
    return tuple(line.replace(r"\n", "\n").replace(r"\r", "\r") for line in lines)


BOTH = _lines(r"""
select age, paid from people
SELECT age, paid FROM people;
select age, paid from people ; ;
-- delete from people\nselect age, paid from people -- into nothing
/* drop table people; */ select age /* copy */, paid from people
select column1 as age, column2 as paid from (values (1, 2), (3, 4)) as x
with adults as (select * from people where age > 17) select age, paid from adults
with adults (a, p) as (select age, paid from people) select a as age, p as paid from adults
with recursive n(i) as (values(1) union all select i+1 from n where i<5) select i age, 1 paid from n
with a as (select 1 as age), b as (select 2 as paid) select age, paid from a, b
select age, paid from (select age, paid from people) as inside
select p.age, q.paid from people as p join people as q on p.place = q.place
select p.age, q.paid from people p left join people q using (place)
select p.age, q.paid from people p inner join people q on (p.place = q.place) where (p.age) > 3
select age, paid from people where city in ('Bern', 'Rom')
select age, paid from people where place in (select place from people where age is not null)
select age, paid from people where exists (select 1 from people as q where q.place = people.place)
select age, paid from people where age between 1 and 90 and not (city like 'Z%')
select age, paid from people union all select age, paid from people
select age, paid from people union select age, paid from people
select age, paid from people intersect select age, paid from people
select age, paid from people except select age, paid from people where age < 3
select age, paid from people order by (age), paid desc limit 10 offset 2
select distinct age, paid from people
select cast(age as real) as age, cast(paid as integer) as paid from people
select coalesce(age, 0) as age, nullif(paid, 0) as paid from people
select case when age > (3) then (age) else (0) end as age, paid from people
select abs(age) as age, round(paid) as paid from people
select length(lower(trim(city))) as age, length(replace(upper(city), 'B', 'bb')) as paid from people
select age, paid from people where substr(city, 1, 1) = 'B' or city || 'x' = 'Romx'
select count(*) as age, sum(paid) as paid from people group by city having count(*) > 0
select min(age) as age, max(paid) as paid from people group by (city)
select avg(age) as age, count(distinct city) as paid from people
select count(*) filter (where age > 3) as age, sum(paid) as paid from people
select age, row_number() over (partition by city order by age) as paid from people
select age, sum(paid) over (order by place rows 1 preceding) as paid from people
select age, lag(paid) over w as paid from people window w as (order by place)
select age, paid from people where city <> 'insert into people; delete from people; lo_export('
select age, paid, age as "delete from (x", paid as "load_extension(" from people
select age, paid, 'it''s' as "in""to" from people
select age, paid from people where current_date > '2000-01-01'
select "people"."age", "people"."paid" from "people"
select age, paid from people where (age, city) in (select age, city from people)
select count(share) as age, sum(x.n) as paid from (select age as share, age as n from people) as x
""")

POSTGRESQL = _lines(r"""
select age, paid from only (people)
(select age, paid from people)
select age, paid from (values (1, 2)) as x (age, paid);
table people
select x.age, x.paid from (values (1, 2), (3, 4)) as x (age, paid)
select age, paid from (values (1, 2)) x (age, paid)
select age::float8, paid::numeric(20, 3)::float8 from people
select age, paid from people where city = $$delete from people; select lo_export($$ or true
select age, paid from people where city = $q$it's $$ here$q$ or city = e'it\'s; drop' or true
select age, paid from people where city ~ '^B' or city ilike any (array['rom', 'paris'])
select distinct on (city) age, paid from people order by city, place
select age, extract(year from date '2020-01-31')::int as paid from people
select age, date_part('month', date_trunc('year', now()))::int as paid from people
select percentile_cont(0.5) within group (order by age) as age, sum(paid) as paid from people
select age, paid from people cross join lateral (select length(city) as n) as x
select age, g as paid from people, generate_series(1, 2) as g
select age, u.n as paid from people, unnest(array[1, 2]) with ordinality as u (n, o)
select age, (paid) from people fetch first 3 rows only
select age, paid from people group by grouping sets ((age, paid), ())
select age, paid from people group by rollup (age, paid)
with adults as not materialized (select * from people) select age, paid from adults
select age, ('{"a": 1}'::jsonb ->> 'a')::int as paid from people
select age, pg_catalog.length(city) as paid from people
select age, paid from people where city similar to '(B|R)%' or position('o' in city) > 0
select age, substring(city from 2 for 1)::text as paid from people
select overlay(city placing 'x' from 1 for 1) as age, paid from people
select age, paid from public.people where city collate "C" > 'A'
""")

SQLITE = _lines(r"""
select age, paid from [people]
select `age`, `paid` from `people`
select iif(age > 3, 1, 0) as age, ifnull(paid, 0) as paid from people
select age, strftime('%Y', '2020-01-31') as paid from people
select age, julianday('2020-01-31') as paid from people
select age, printf('%d', age) as paid from people
select group_concat(city) as age, total(paid) as paid from people
select age, json_extract('{"a": 1}', '$.a') as paid from people
select people.age, value as paid from people, json_each('[1, 2]')
select rowid as age, typeof(paid) as paid from people
select age, paid from people where city glob 'B*' or city == 'Rom'
select age, instr(city, 'o') as paid from people
select age, hex(city) as paid from people
select max(age, 1) as age, min(paid, 2) as paid from people
select age, paid from main.people not indexed
""")

NO_QUERIES = {
    "sqlite": _lines(r"""
alter table people rename to others
alter table people add column more text
analyze
attach '{out}' as copy
begin
begin immediate
commit
create index quick on people (age)
create table more as select * from people
create temp table more as select * from people
create trigger t after insert on people begin delete from people; end
create view v as select * from people
create virtual table v using fts5(x)
delete from people
delete from people returning age, paid
detach main
drop table people
drop view if exists v
end transaction
explain select age, paid from people
explain query plan select age, paid from people
insert into people (age) values (1)
insert into people (age) values (1) returning age, paid
insert or replace into people (place, age) values (1, 1) on conflict do nothing
pragma user_version = 7
pragma table_info(people)
pragma journal_mode = wal
reindex
release savepoint s
replace into people (place, age) values (1, 1)
rollback
savepoint s
update people set age = 1
update people set age = 1 returning age, paid
vacuum
vacuum into '{out}'
vacuum main into '{out}'
with x as (select 1) delete from people
with x as (select 1) update people set age = 1 returning age, paid
with x as (select 1) insert into people (age) select 1 returning age, paid
select age, paid from people; vacuum into '{out}'
"""),
    "postgresql": _lines(r"""
abort
alter role rich rename to richer
alter system set work_mem = '5MB'
alter table people rename to others
analyze people
begin
call do_something()
checkpoint
close all
cluster
comment on table people is 'mine'
commit
copy people to '{out}'
copy (select age, paid from people) to '{out}'
copy (select age, paid from people) to program 'cat > {out}'
copy people to stdout
copy people (age) from program 'echo 1'
create database more
create extension dblink
create function f() returns int language sql as 'select 1'
create index quick on people (age)
create materialized view more as select * from people
create role more superuser
create schema more
create table more as select * from people
create temp table more as select * from people
create view v as select * from people
deallocate all
declare c cursor for select * from people
delete from people returning age, paid
discard all
do $$ begin copy people to '{out}'; end $$
drop table people
end
execute s
explain select age, paid from people
explain analyze insert into people (age) values (1)
fetch next from c
grant select on people to public
import foreign schema x from server y into z
insert into people (age) values (1) returning age, paid
listen news
load 'auto_explain'
lock table people
merge into people using people as p on false when not matched then do nothing
move next in c
notify news
prepare s as select 1
reassign owned by reader to reader
refresh materialized view more
reindex table people
release savepoint s
reset all
revoke all on people from public
rollback
savepoint s
security label on table people is 'x'
select age, paid into more from people
select age, paid from people for update
select age, paid from people for no key update
set session characteristics as transaction read write
set role postgres
show all
start transaction read write
truncate people
unlisten *
update people set age = 1 returning age, paid
vacuum
with x as (delete from people returning *) select age, paid from x
with x as materialized (insert into people (age) values (1) returning *) select age, paid from x
with x as (select 1) update people set age = 1 returning age, paid
select age, paid from people; copy people to '{out}'
select age, paid from people) as x; copy people to '{out}'; select (1
"""),
    "duckdb": _lines(r"""
alter table people rename to others
analyze
attach '{out}' as copied
begin transaction
call pragma_version()
checkpoint
comment on table people is 'mine'
commit
copy people to '{out}'
copy people to '{out}' (format parquet)
copy people from '{out}'
copy from database people to memory
create table more as select * from people
create temp table more as select * from people
create view v as select * from people
create macro f() as 1
create schema more
create secret s (type s3)
create sequence s
create type t as enum ('a')
deallocate s
delete from people
detach people
drop table people
execute s
explain select * from people
export database '{out}'
import database '{out}'
insert into people values (1)
install httpfs
load httpfs
merge into people using people as p on false when not matched then do nothing
pragma database_list
prepare s as select 1
reset memory_limit
rollback
set memory_limit = '1GB'
set variable x = 1
truncate people
update people set age = 1
use memory
vacuum
"""),
}

CALLS = _lines(r"""
select pg_read_file('{out}') as age, paid from people
select lo_export(1, '{out}') as age, paid from people
select lo_import('{out}') as age, paid from people
select lo_from_bytea(0, 'x') as age, paid from people
select pg_ls_dir('.') as age, paid from people
select set_config('work_mem', '5MB', false) as age, paid from people
select pg_terminate_backend(0) as age, paid from people
select pg_advisory_lock(1) as age, paid from people
select nextval('people_place_seq') as age, paid from people
select setval('people_place_seq', 1) as age, paid from people
select query_to_xml('select 1', true, true, '') as age, paid from people
select dblink('host=localhost', 'select 1') as age, paid from people
select pg_notify('news', 'x') as age, paid from people
select pg_sleep(0) as age, paid from people
select currval('people_place_seq') as age, random() as paid from people
select ts_stat('select 1') as age, paid from people
select "pg_read_file"('{out}') as age, paid from people
select PG_Read_File ('{out}') as age, paid from people
select pg_read_file/* x */('{out}') as age, paid from people
select pg_read_file -- x\n('{out}') as age, paid from people
select pg_catalog.pg_read_file('{out}') as age, paid from people
select "pg_catalog"."lo_export"(1, '{out}') as age, paid from people
select u&"\006co_export"(1, '{out}') as age, paid from people
select distinct on (city) lo_export(1, '{out}') as age, paid from people
select age, paid from people, lo_export(1, '{out}') as x (age)
select age, paid from people, lo_export(1, '{out}') x (n)
select age, paid from people, lo_export(1, '{out}') as (values int)
select age, paid from people, lo_export(1, '{out}') as (values materialized (1))
select age, paid from rows from (lo_export(1, '{out}'), generate_series(1, 2)) as x
select age, paid from people where city = e'a'\n'\', lo_export(1, ''x'') , '
select age, paid from people -- \r, lo_export(1, '{out}')
select age, paid from people /* /* */ , lo_export(1, '{out}') /* */ */
select age, paid from people order by lo_export(1, '{out}')
select age, paid from people limit lo_export(1, '{out}')
with x as (select lo_export(1, '{out}')) select age, paid from people
select age, paid operator(public.+) 1 as paid from people
select age, paid from pg_hba_file_rules, people
select age, paid from pg_catalog.pg_authid, people
select public.lower(city) as age, paid from people
select age, paid from people tablesample system (10)
""")
