package tenon

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStep(t *testing.T) {
	for _, x := range []struct {
		name                            string
		want                            Step
		run, call, question, compaction bool
	}{
		{name: "", run: true},
		{name: "3", want: Step{Unit: "3"}},
		{name: "c3", want: Step{Unit: "c3"}, compaction: true},
		{name: "3.0", want: Step{Unit: "3", Call: "0"}, call: true},
		{name: "3.12/question.2", want: Step{Unit: "3", Call: "12", Question: "question.2"}, question: true},
		{name: "load", want: Step{Unit: "load"}},
		{name: "load.4", want: Step{Unit: "load", Call: "4"}, call: true},
		{name: "load/a/b", want: Step{Unit: "load", Question: "a/b"}, question: true},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := ParseStep(x.name)
			if diff := cmp.Diff(x.want, s); diff != "" {
				t.Errorf("ParseStep (-want +got):\n%s", diff)
			}
			if s.String() != x.name {
				t.Errorf("String() = %q, want %q", s.String(), x.name)
			}
			got := []bool{s == Step{}, s.IsCall(), s.IsQuestion(), s.IsCompaction()}
			if diff := cmp.Diff([]bool{x.run, x.call, x.question, x.compaction}, got); diff != "" {
				t.Errorf("zero, IsCall, IsQuestion, IsCompaction (-want +got):\n%s", diff)
			}
			if s.Asker().IsQuestion() {
				t.Errorf("the asker %s of %s is a question", s.Asker(), s)
			}
		})
	}
}

func TestRunIDs(t *testing.T) {
	id := ChildRun(ChildRun("run_1", "3.1"), "2.0")
	if id != "run_1/3.1/2.0" {
		t.Fatalf("ChildRun returns %q", id)
	}
	if run, step := ParentRun(id); run != "run_1/3.1" || step != "2.0" {
		t.Errorf("ParentRun returns %q, %q", run, step)
	}
	if run, step := ParentRun("run_1"); run != "" || step != "" {
		t.Errorf("ParentRun of a run that nobody started returns %q, %q", run, step)
	}
	if root := RootRun(id); root != "run_1" {
		t.Errorf("RootRun returns %q", root)
	}
}
