package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReads checks which keys of arguments conditions read.
func TestReads(t *testing.T) {
	for _, tt := range []struct {
		name, condition string
		want            Keys
	}{
		{"a field", `args.path == "a"`, Keys{"path": nil}},
		{"in brackets", `args["the path"] == "a"`, Keys{"the path": nil}},
		{"whether it is there", `has(args.path)`, Keys{"path": nil}},
		{"whether it is among the keys", `"path" in args`, Keys{"path": nil}},
		{"a function of it", `under(args.path, "/srv") && size(args.note) < 9`, Keys{"path": nil, "note": nil}},
		{"a method of it", `args.path.startsWith("/srv")`, Keys{"path": nil}},
		{"below it", `args.opts.root == "a" && args.opts["mode"] == "b"`, Keys{"opts": {"root": nil, "mode": nil}}},
		{"an element of a list", `args.files[0].path == "a"`, Keys{"files": {"path": nil}}},
		{"a loop over a list", `args.files.all(f, under(f.path, "/srv"))`, Keys{"files": {"path": nil}}},
		{"a loop over keys", `args.exists(k, k == "path")`, Keys{"path": nil}},
		{"a loop over keys, with a list", `args.all(k, k in ["path", "mode"])`, Keys{"path": nil, "mode": nil}},
		{"loops in one another", `args.sets.all(s, s.files.all(f, f.path == "a"))`, Keys{"sets": {"files": {"path": nil}}}},
		{"in a list and a map", `[args.a, {"k": args.b}["k"]].size() == 2`, Keys{"a": nil, "b": nil}},
		{"in a choice", `tool.remote_name == "x" ? args.a : args.b`, Keys{"a": nil, "b": nil}},
		{"arguments of the server", `"--root" in server.args`, Keys{}},
		{"nothing", `tool.remote_name == "path"`, Keys{}},
	} {
		t.Run("SEC-G2_"+tt.name, func(t *testing.T) {
			var rules, block Rules
			if err := rules.Add(Rule{When: tt.condition, Verdict: "allow"}); err != nil {
				t.Fatal(err)
			}
			block.Defaults.Approval.If = tt.condition
			if err := block.Compile(); err != nil {
				t.Fatal(err)
			}
			for _, r := range []*Rules{&rules, &block} {
				got := NewLayers(Layer{Rules: &Rules{}}, Layer{Rules: r}).Reads()
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}
