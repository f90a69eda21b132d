"""Writes random tables and asks DuckDB 200 queries over them.

FOLDER SEED   writes a.arrow and b.arrow, and prints [{"sql", "rows"}]: rows are lists of
              cells, in the order of the query

Left out is what the two are known to write differently: division of integers, upper and
lower case beyond ASCII, rounding.
"""
import datetime
import decimal
import json
import os
import random
import sys

import duckdb
import pyarrow as pa
import pyarrow.ipc as ipc

folder, seed = sys.argv[1], int(sys.argv[2])
rnd = random.Random(seed)
CITIES = ["berlin", "paris", "london", "rome", "", "são paulo", "x y"]


def maybe(v, p=0.12):
    return None if rnd.random() < p else v


def table(rows):
    day = datetime.date(2024, 1, 1)
    at = datetime.datetime(2024, 1, 1)
    cols = {
        "id": pa.array(range(rows), pa.int64()),
        "big": pa.array([maybe(rnd.choice([1, -1]) * rnd.randrange(2**53, 2**62)) for _ in range(rows)], pa.int64()),
        "k": pa.array([maybe(rnd.randrange(12)) for _ in range(rows)], rnd.choice([pa.int8(), pa.int32(), pa.uint16()])),
        "f": pa.array([maybe(round(rnd.uniform(-1000, 1000), rnd.randrange(6))) for _ in range(rows)], pa.float64()),
        "dec": pa.array([maybe(decimal.Decimal(rnd.randrange(-10**7, 10**7)).scaleb(-2)) for _ in range(rows)], pa.decimal128(12, 2)),
        "city": pa.array([maybe(rnd.choice(CITIES)) for _ in range(rows)], rnd.choice([pa.string(), pa.large_string()])),
        "ok": pa.array([maybe(rnd.random() < 0.5) for _ in range(rows)], pa.bool_()),
        "d": pa.array([maybe(day + datetime.timedelta(rnd.randrange(800))) for _ in range(rows)], pa.date32()),
        "ts": pa.array([maybe(at + datetime.timedelta(seconds=rnd.randrange(10**8))) for _ in range(rows)], pa.timestamp(rnd.choice(["s", "us"]))),
    }
    if rnd.random() < 0.5:
        cols["city"] = pa.array(cols["city"].cast(pa.string()).to_pylist()).dictionary_encode()
    t = pa.table(cols)
    return t.slice(rnd.randrange(5)) if rnd.random() < 0.5 else t


def write(t, name):
    with ipc.new_file(os.path.join(folder, name), t.schema) as w:  # in chunks of odd sizes
        at = 0
        while at < t.num_rows:
            n = rnd.choice([1, 3, 17, 100])
            for b in t.slice(at, n).combine_chunks().to_batches():
                w.write_batch(b)
            at += n


a, b = table(rnd.randrange(150, 400)), table(rnd.randrange(20, 80))
write(a, "a.arrow")
write(b, "b.arrow")
db = duckdb.connect()
db.register("a", a)
db.register("b", b)

NUMBERS, TEXTS, TIMES = ["id", "k", "f", "dec"], ["city"], ["d", "ts"]


def condition(t, depth=0):
    c = rnd.choice(["cmp", "cmp", "between", "in", "null", "like", "bool", "date", "and", "not"] if depth < 2 else ["cmp", "null", "bool"])
    n, op = rnd.choice(NUMBERS), rnd.choice(["<", "<=", ">", ">=", "=", "<>"])
    if c == "cmp":
        return f"{t}.{n} {op} {rnd.randrange(-20, 60)}"
    if c == "between":
        return f"{t}.{n} BETWEEN {rnd.randrange(-100, 5)} AND {rnd.randrange(5, 100)}"
    if c == "in":
        return f"{t}.city IN ('berlin', 'rome', '')"
    if c == "null":
        return f"{t}.{rnd.choice(NUMBERS + TEXTS + TIMES)} IS {rnd.choice(['', 'NOT '])}NULL"
    if c == "like":
        return f"{t}.city LIKE '{rnd.choice(['%o%', 'r%', '%n', '_ y'])}'"
    if c == "bool":
        return rnd.choice([f"{t}.ok", f"NOT {t}.ok"])
    if c == "date":
        return rnd.choice([f"{t}.d >= '2024-07-01'", f"{t}.ts < '2025-03-01 12:00:00'"])
    if c == "not":
        return f"NOT ({condition(t, depth + 1)})"
    return f"({condition(t, depth + 1)} {rnd.choice(['AND', 'OR'])} {condition(t, depth + 1)})"


def value(t):
    n = rnd.choice(NUMBERS)
    return rnd.choice([
        f"{t}.{n}", f"{t}.{n}", f"{t}.city", f"{t}.d", f"{t}.ts", f"{t}.ok", f"{t}.big", f"{t}.dec",
        f"{t}.k * 3 + {t}.id", f"abs({t}.f)", f"coalesce({t}.k, -1)", f"upper(replace({t}.city, 'ã', 'a'))", f"length({t}.city)",
        f"substr({t}.city, 2, 3)", f"replace({t}.city, 'o', '0')", f"CASE WHEN {condition(t)} THEN {t}.id ELSE -{t}.id END",
        f"nullif({t}.city, '')", f"{t}.city || '/' || {t}.id", f"{t}.f IS NULL",
    ])


def aggregate(t):
    n = rnd.choice(NUMBERS)
    return rnd.choice([
        "count(*)", f"count({t}.{n})", f"sum({t}.{n})", f"avg({t}.{n})", f"min({t}.{n})", f"max({t}.{n})", f"count(DISTINCT {t}.city)",
        f"min({t}.city)", f"max({t}.d)", f"min({t}.ts)", f"sum({t}.k * 2)", f"sum(CASE WHEN {t}.ok THEN 1 ELSE 0 END)", f"max({t}.big)",
    ])


def ordered(sql, n):
    return sql + " ORDER BY " + ", ".join(f"{i + 1} NULLS FIRST" for i in range(n))


def query():
    kind = rnd.choice(["plain", "group", "group", "join", "left", "using", "window", "set", "cte", "exists", "sub", "recursive", "distinct"])
    if kind == "plain":
        cols = ["a.id"] + [value("a") for _ in range(rnd.randrange(1, 5))]
        return ordered(f"SELECT {', '.join(cols)} FROM a WHERE {condition('a')}", 1)
    if kind == "group":
        key = rnd.choice(["a.city", "a.k", "a.ok", "a.d", "coalesce(a.k, 99)"])
        cols = [aggregate("a") for _ in range(rnd.randrange(1, 5))]
        having = rnd.choice(["", " HAVING count(*) > 2"])
        return ordered(f"SELECT {key}, {', '.join(cols)} FROM a WHERE {condition('a')} GROUP BY {key}{having}", 1)
    if kind in ("join", "left"):
        how = "JOIN" if kind == "join" else "LEFT JOIN"
        return ordered(f"SELECT a.id, b.id, {value('a')}, {value('b')} FROM a {how} b ON a.k = b.k AND {condition('b', 2)} WHERE {condition('a')}", 2)
    if kind == "using":
        return ordered(f"SELECT a.id, b.id, city FROM a JOIN b USING (city, k) WHERE {condition('a')}", 2)
    if kind == "window":
        w = rnd.choice(["row_number() OVER (PARTITION BY a.k ORDER BY a.id)", "sum(a.id) OVER (PARTITION BY a.city ORDER BY a.id)",
                        "lag(a.id) OVER (ORDER BY a.id)", "rank() OVER (ORDER BY a.k NULLS FIRST)", "count(*) OVER (PARTITION BY a.ok)"])
        return ordered(f"SELECT a.id, {w} FROM a WHERE {condition('a')}", 1)
    if kind == "set":
        c = rnd.choice(["city", "k", "d"])
        return ordered(f"SELECT a.{c} FROM a WHERE {condition('a')} {rnd.choice(['UNION', 'UNION ALL', 'EXCEPT', 'INTERSECT'])} SELECT b.{c} FROM b WHERE {condition('b')}", 1)
    if kind == "cte":
        return ordered(f"WITH x AS (SELECT a.k AS k, sum(a.f) AS s, count(*) AS n FROM a WHERE {condition('a')} GROUP BY a.k) SELECT x.k, x.s, b.id FROM x JOIN b ON x.k = b.k WHERE x.n > 1", 3)
    if kind == "exists":
        return ordered(f"SELECT a.id, a.city FROM a WHERE {rnd.choice(['', 'NOT '])}EXISTS (SELECT 1 FROM b WHERE b.city = a.city AND {condition('b')})", 1)
    if kind == "sub":
        return ordered(f"SELECT a.id, a.f FROM a WHERE a.f > (SELECT avg(b.f) FROM b WHERE {condition('b')})", 1)
    if kind == "recursive":
        n = rnd.randrange(3, 40)
        return ordered(f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {n}) SELECT i, (SELECT count(*) FROM a WHERE a.k = i) FROM n", 1)
    return ordered(f"SELECT DISTINCT a.city, a.k FROM a WHERE {condition('a')}", 2)


def cell(v):
    if isinstance(v, decimal.Decimal):
        return float(v)
    if isinstance(v, (datetime.date, datetime.datetime)):
        return v.isoformat()
    if isinstance(v, int) and not isinstance(v, bool) and abs(v) > 2**53:
        return str(v)  # exact, whatever reads it
    return v


out = []
for _ in range(200):
    sql = query()
    out.append({"sql": sql, "rows": [[cell(v) for v in row] for row in db.execute(sql).fetchall()]})
json.dump(out, sys.stdout)
