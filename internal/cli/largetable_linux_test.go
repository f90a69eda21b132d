package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/table"
)

// maxLarge bounds the whole process, in KiB. A table of 96 MiB in memory would exceed it, with the copies that reading
// and writing take.
const maxLarge = 150 << 10

// TestRP20_LargeTableMemory measures the peak of a run with a large table from a file, through SQL, to a file. The
// table has 96 MiB, or 300 MiB with TENON_HOSTILE=all (make hostile).
func TestRP20_LargeTableMemory(t *testing.T) {
	longtest.Skip(t)
	m := newPeakMeter(t)
	dir := aloneForZips(t)
	t.Setenv("GOGC", "")
	times := 12
	if os.Getenv("TENON_HOSTILE") == "all" {
		times = 38
	}
	part, in := filepath.Join(dir, "part.arrow"), filepath.Join(dir, "in.arrow")
	text := strings.Repeat("0123456789abcdef", 64)
	rows := make([]json.RawMessage, 8<<10)
	for i := range rows {
		rows[i] = json.RawMessage(fmt.Sprintf(`{"id":%d,"text":%q}`, i, text))
	}
	if err := table.WriteRows(t.Context(), part, rows, nil, table.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	var list []*table.Reader
	for range times {
		r, err := table.Open(t.Context(), part, table.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close() //nolint:errcheck // it was only read
		list = append(list, r)
	}
	if _, err := table.Concat(t.Context(), in, list, table.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	flow := filepath.Join(dir, "flow.yaml")
	if err := os.WriteFile(flow, []byte(`kind: workflow
version: 1
name: big
description: d
inputs: [{name: big, description: b, columns: {id: integer, text: string}}]
steps:
  - {id: all, sql: "SELECT id, text FROM big"}
outputs: [{name: out, description: o, from: all}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for left := 2; ; left-- { // on a busy machine the garbage collector is late, so the lowest peak counts
		out := filepath.Join(t.TempDir(), "out.arrow")
		kib, errs := m.run(t, "workflows", "run", flow, "--in", in, "--out", out, "--yes")
		if st, err := os.Stat(out); err != nil || st.Size() < int64(times)*8<<20 {
			t.Fatalf("%+v, %v: %s", st, err, errs)
		}
		t.Logf("%d KiB", kib)
		if kib <= maxLarge {
			return
		}
		if left == 0 {
			t.Fatalf("a run with a table of %d MiB takes %d KiB", times*8, kib)
		}
	}
}
