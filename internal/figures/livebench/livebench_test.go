package livebench

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/tenonhq/tenon/catalog"
)

const dir = "../../../../shared/data/tool-search/livemcpbench"

func snapshot(t testing.TB) *catalog.Snapshot {
	t.Helper()
	sources, err := Load(dir)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("needs the tools of LiveMCPBench in ../shared")
	}
	if err != nil {
		t.Fatal(err)
	}
	s, problems := catalog.Build(sources)
	if len(s.Tools()) != 527 || len(s.Withheld()) > 0 || len(problems) > 0 {
		t.Fatalf("%d tools, withheld %v, problems %v", len(s.Tools()), s.Withheld(), problems)
	}
	return s
}

// TestEveryProviderTakesRealTools checks 527 real tools. None may be withheld, by tenon or for any provider,
// and the sent definitions need no further changes.
func TestEveryProviderTakesRealTools(t *testing.T) {
	s := snapshot(t)
	for _, p := range catalog.Providers() {
		tools, out := s.For(p)
		if len(tools) != 527 || len(out) > 0 {
			t.Errorf("%s: %d tools, withheld %v", p, len(tools), out)
		}
		for i := range tools {
			if again, changes, err := catalog.Portable(p, tools[i].Input); err != nil || len(changes) > 0 ||
				string(again) != string(tools[i].Input) {
				t.Errorf("%s: %s still needs changes: %v %v", p, tools[i].Name, changes, err)
			}
		}
	}
}

// TestSearchFloor checks the score of the search at its introduction, with a tolerance of one pair.
func TestSearchFloor(t *testing.T) {
	s := snapshot(t)
	got, err := Score(s, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("steps %d: R@1 %d, R@5 %d, R@10 %d; tasks %d: R@10 %.3f", got.Steps, got.Step1, got.Step5, got.Step10,
		got.Tasks, got.Task10)
	if got.Steps != 95 || got.Tasks != 94 {
		t.Errorf("%d steps and %d tasks, want 95 and 94: the procedure differs", got.Steps, got.Tasks)
	}
	if got.Step1 < 49 || got.Step5 < 70 || got.Step10 < 73 || got.Task10 < 0.50 {
		t.Error("the search score has decreased")
	}
}

func BenchmarkSearch(b *testing.B) {
	x := snapshot(b).Index()
	b.ReportAllocs()
	for b.Loop() {
		x.Search("Query the schedule of high-speed trains from Beijing to Shanghai tomorrow morning", 10)
	}
}
