package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon/table"
)

// sales is a query for a table of five columns: integers, strings, floats and dates.
const sales = `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i+1 < %d)
SELECT i AS id, 'city ' || (i*7919 %% 1000) AS city, (i*104729 %% 100000)/100.0 AS amount, i %% 97 AS quantity,
date('2020-01-01', (i %% 1500) || ' days') AS day FROM n`

// The measured queries. The group-by reads all columns. So does the ingest, which does nothing once SQL can
// read the rows.
const (
	groupSales  = `SELECT city, count(*), sum(amount), avg(quantity), min(id), max(day) FROM sales GROUP BY city`
	ingestSales = `SELECT id, city, amount, quantity, day FROM sales LIMIT 1`
)

// salesFiles holds the same rows in three formats.
type salesFiles struct {
	dir, sqlite string
	rows        int
}

func (f salesFiles) csv() string      { return filepath.Join(f.dir, "sales.csv") }
func (f salesFiles) database() string { return filepath.Join(f.dir, "sales.db") }

func arrowOf(dir string) string { return filepath.Join(dir, "sales.arrow") }

// salesOf creates the rows as an Arrow table, as CSV, and as a database of the sqlite3 program, which must be
// installed.
func (s *session) salesOf(rows int) (salesFiles, error) {
	f := salesFiles{dir: filepath.Join(s.tmp, "sales-"+strconv.Itoa(rows)), rows: rows}
	var err error
	if f.sqlite, err = exec.LookPath("sqlite3"); err != nil {
		return f, fmt.Errorf("not measured: the sqlite3 program is missing: %w", err)
	}
	if _, err := os.Stat(f.database()); !errors.Is(err, fs.ErrNotExist) {
		return f, err // created for another figure
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return f, err
	}
	made := fmt.Sprintf(sales, rows)
	if _, err := table.Select(s.ctx, table.Query{SQL: made}, arrowOf(f.dir), table.WriteOptions{}); err != nil {
		return f, err
	}
	csv, err := os.Create(f.csv())
	if err != nil {
		return f, err
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(s.ctx, f.sqlite, "-csv", ":memory:", made)
	cmd.Stdout, cmd.Stderr = csv, &said
	if err := errors.Join(cmd.Run(), csv.Close()); err != nil {
		return f, fmt.Errorf("sqlite3: %w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	_, err = s.spent(f.load(f.database())...)
	return f, err
}

// load returns the command that imports the CSV into a new database. It does not flush to disk, and neither
// does tenon.
func (f salesFiles) load(database string) []string {
	return []string{f.sqlite, "-bail", database, "PRAGMA journal_mode=OFF", "PRAGMA synchronous=OFF",
		"CREATE TABLE sales(id INTEGER, city TEXT, amount REAL, quantity INTEGER, day TEXT)",
		".import --csv '" + f.csv() + "' sales"}
}

// measureT3 compares a group-by over 1,000,000 rows of five columns of an Arrow table, including reading it,
// with the sqlite3 program on a database that already contains the rows.
func measureT3(s *session) error {
	f, err := s.salesOf(manyRows)
	if err != nil {
		return err
	}
	var ours, theirs, cpu []float64
	for range s.rounds {
		mine, other, err := s.groupRound(f)
		if err != nil {
			return err
		}
		ours, theirs = append(ours, mine.Wall.Seconds()*1e3), append(theirs, other.Wall.Seconds()*1e3)
		cpu = append(cpu, mine.CPU.Seconds()/other.CPU.Seconds())
	}
	s.add("T3",
		"SQL group-by over 1,000,000 rows of an Arrow table, read for it, against sqlite3's CLI on its own database",
		"ratio", ratios(ours, theirs))
	s.add("T3.cpu", "the same: CPU", "ratio", cpu)
	s.add("T3.ours", "SQL group-by over 1,000,000 rows of an Arrow table", "ms", ours)
	s.add("T3.sqlite3", "the same with sqlite3's CLI on its own database", "ms", theirs)
	return nil
}

// groupRound runs the group-by once with each program.
func (s *session) groupRound(f salesFiles) (ours, theirs spent, err error) {
	if ours, err = s.spent(s.exe, "child", groupChild, f.dir); err != nil {
		return ours, theirs, err
	}
	if theirs, err = s.spent(f.sqlite, "-bail", f.database(), groupSales); err != nil {
		return ours, theirs, err
	}
	if mine, other := strings.TrimSpace(ours.Out), strconv.Itoa(strings.Count(theirs.Out, "\n")); mine != other {
		return ours, theirs, fmt.Errorf("%s groups, but %s with sqlite3", mine, other)
	}
	return ours, theirs, nil
}

// measureT4 compares the time until SQL can read 1,000,000 rows of an Arrow table with the import of the same
// rows from CSV by the sqlite3 program.
func measureT4(s *session) error {
	f, err := s.salesOf(manyRows)
	if err != nil {
		return err
	}
	var ours, theirs, cpu []float64
	for range s.rounds {
		mine, other, err := s.ingestRound(f)
		if err != nil {
			return err
		}
		ours, theirs = append(ours, mine.Wall.Seconds()*1e3), append(theirs, other.Wall.Seconds()*1e3)
		cpu = append(cpu, mine.CPU.Seconds()/other.CPU.Seconds())
	}
	s.add("T4", "ingest of 1,000,000 rows of five columns from Arrow against the import of their CSV by sqlite3's CLI",
		"ratio", ratios(ours, theirs))
	s.add("T4.cpu", "the same: CPU", "ratio", cpu)
	s.add("T4.ours", "ingest of 1,000,000 rows from Arrow", "ms", ours)
	s.add("T4.sqlite3", "import of their CSV by sqlite3's CLI", "ms", theirs)
	return nil
}

// ingestRound reads the rows once with each program.
func (s *session) ingestRound(f salesFiles) (ours, theirs spent, err error) {
	if ours, err = s.spent(s.exe, "child", ingestChild, f.dir); err != nil {
		return ours, theirs, err
	}
	if got := strings.TrimSpace(ours.Out); got != "1" {
		return ours, theirs, fmt.Errorf("%s rows of one", got)
	}
	fresh := filepath.Join(f.dir, "fresh.db")
	if theirs, err = s.spent(f.load(fresh)...); err != nil {
		return ours, theirs, err
	}
	count, err := s.spent(f.sqlite, fresh, "SELECT count(*) FROM sales")
	if err == nil && strings.TrimSpace(count.Out) != strconv.Itoa(f.rows) {
		err = fmt.Errorf("sqlite3 imported %s rows of %d", strings.TrimSpace(count.Out), f.rows)
	}
	return ours, theirs, errors.Join(err, os.Remove(fresh))
}

// querySales does the work of tenon tables query with one of the two queries, with a file as the result.
func querySales(ctx context.Context, what, dir string) (rows int64, err error) {
	sql := groupSales
	if what == ingestChild {
		sql = ingestSales
	}
	r, err := table.Open(ctx, arrowOf(dir), table.Options{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	got, err := table.Select(ctx, table.Query{SQL: sql, Tables: []table.Input{{Name: "sales", Reader: r}}},
		filepath.Join(dir, "result.arrow"), table.WriteOptions{})
	return got.Rows, err
}
