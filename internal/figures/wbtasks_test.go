package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWorkbenchTasks checks the rows of the ten tasks, and that they are those of the page that measures them.
func TestWorkbenchTasks(t *testing.T) {
	spec, err := os.ReadFile(filepath.Join("..", "..", "web", "app", "figures", "tasks.spec.ts"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(spec), "{ id: \""); n != len(workbenchTasks) {
		t.Errorf("%d tasks are measured, and %d are listed", n, len(workbenchTasks))
	}
	values := map[string][]float64{}
	for i, task := range workbenchTasks {
		if !strings.Contains(string(spec), "{ id: \""+task.id+"\", name: \""+task.name+"\"") {
			t.Errorf("%s is not measured", task.id)
		}
		for _, kind := range []string{"clicks", "seconds"} {
			values["WB.tasks."+task.id+"."+kind] = []float64{float64(i), 4}
			values["WB.tasks."+task.id+"."+kind+".inspector"] = []float64{10, 5}
		}
	}
	s := &session{goal: "WB", rounds: 2}
	if err := s.addTasks(values); err != nil {
		t.Fatal(err)
	}
	if n := len(s.measured); n != 22 {
		t.Fatalf("%d rows", n)
	}
	worst := s.measured[10]
	if worst.ID != "WB.tasks.clicks" || worst.Value != 0.85 || !worst.Holds { // of 0.9 and 0.8
		t.Errorf("%+v", worst)
	}
	delete(values, "WB.tasks.call.seconds")
	if err := s.addTasks(values); err == nil {
		t.Error("a task that was not measured is no error")
	}
	for version, want := range map[string]bool{"v22.19.0\n": true, "v22.18.1": false, "v20.20.2": false, "v24.0.0": true, "": false} {
		if nodeFits(version) != want {
			t.Errorf("%q fits: %v", version, !want)
		}
	}
}
