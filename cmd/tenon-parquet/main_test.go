package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/table"
)

// accept is the folder of the tables that tenon's own tests use.
const accept = "../../internal/cli/testdata/accept"

// TestRoundtrip converts tables to Parquet and back, by a file and by a stream.
func TestRoundtrip(t *testing.T) {
	dir := t.TempDir()
	csv := "id,city,amount,when,ok\n1,\"London, UK\",10.5,2026-01-02T03:04:05Z,true\n2,Łódź,,,false\n"
	data := filepath.Join(dir, "data.arrow")
	if _, err := table.Import(context.Background(), data, strings.NewReader(csv),
		table.ImportOptions{Format: table.FormatCSV}, table.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"data": data, "tools": filepath.Join(accept, "mixed.arrow"),
		"KNIME's_layout": filepath.Join(accept, "java10.arrow"), "missing_cells": filepath.Join(accept, "nulls.arrow")} {
		t.Run("RP-20_"+name, func(t *testing.T) {
			parquet, back := filepath.Join(t.TempDir(), "x.parquet"), filepath.Join(t.TempDir(), "x.arrow")
			var errs, stream bytes.Buffer
			for _, args := range [][]string{{path, parquet}, {parquet, back}, {parquet, "-"}} {
				if err := run(context.Background(), args, nil, &stream, &errs); err != nil {
					t.Fatal(args, err)
				}
			}
			for _, o := range []table.Options{{}, {Stdin: &stream}} {
				other := back
				if o.Stdin != nil {
					other = "-"
				}
				a, err := table.Open(context.Background(), path, table.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer a.Close()
				b, err := table.Open(context.Background(), other, o)
				if err != nil {
					t.Fatal(err)
				}
				defer b.Close()
				compare := table.Diff
				if name != "data" {
					compare = table.DiffTools // the layout may differ, so compare only the tools
				}
				if list, err := compare(context.Background(), a, b); err != nil || len(list) > 0 {
					t.Errorf("%s: %v %v", other, list, err)
				}
			}
		})
	}
}

// TestRefused checks that wrong arguments and broken files are errors and leave no file behind.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.parquet")
	if err := os.WriteFile(broken, []byte("PAR1 and no more PAR1"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out.arrow")
	for want, args := range map[string][]string{
		"an input and an output are needed": {"a.parquet"},
		"one of":                            {"a.csv", "b.arrow"},
		"there is no file":                  {filepath.Join(dir, "none.parquet"), out},
		"there is no table":                 {filepath.Join(dir, "none.arrow"), filepath.Join(dir, "x.parquet")},
		"not a readable Parquet file":       {broken, out},
	} {
		var errs bytes.Buffer
		if err := run(context.Background(), args, nil, nil, &errs); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", args, err, want)
		}
	}
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 1 {
		t.Errorf("files left behind: %v %v", list, err)
	}
}

// FuzzParquet reads corrupt Parquet files. Nothing may panic.
func FuzzParquet(f *testing.F) {
	dir := f.TempDir()
	good := filepath.Join(dir, "good.parquet")
	if err := run(context.Background(), []string{filepath.Join(accept, "nulls.arrow"), good}, nil, nil,
		&bytes.Buffer{}); err != nil {
		f.Fatal(err)
	}
	data, err := os.ReadFile(good)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	for i := 4; i < len(data); i += 97 { // go test runs the seeds
		bad := bytes.Clone(data)
		bad[i] ^= 0xff
		f.Add(bad)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "x.parquet")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_ = run(context.Background(), []string{path, "-"}, nil, &bytes.Buffer{}, &bytes.Buffer{})
	})
}
