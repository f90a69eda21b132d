package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// measurePG measures the store in PostgreSQL. Each round is a run of store/postgres.TestFigures against a server of its
// own, with fsync: only that package imports the driver.
func measurePG(s *session) error {
	all := map[string][]float64{}
	for round := range s.rounds {
		file := filepath.Join(s.tmp, fmt.Sprintf("pg-%d.json", round))
		cmd := exec.CommandContext(s.ctx, filepath.Join(s.root, ".ci", "postgres.sh"), "go", "test", "-count=1", "-run",
			"^TestFigures$", "./store/postgres")
		cmd.Dir = s.root
		cmd.Env = append(os.Environ(), "TENON_FIGURES="+file, "TENON_POSTGRES_FSYNC=on")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var values map[string]float64
		if err := json.Unmarshal(b, &values); err != nil {
			return err
		}
		for id, v := range values {
			all[id] = append(all[id], v)
		}
	}
	for _, f := range []struct{ id, name, unit string }{
		{"steps", "PostgreSQL: durable steps with 100 writers against bare group-committed inserts of the same bytes",
			"ratio"},
		{"steps.ours", "PostgreSQL: durable steps with 100 writers", "1/s"},
		{"steps.floor", "PostgreSQL: bare group-committed inserts with 100 writers", "1/s"},
		{"turn", "PostgreSQL: one step of a run that is alone against as many bare commits of the same bytes", "ratio"},
		{"turn.ours", "PostgreSQL: one step of a run that is alone", "ms"},
		{"turn.floor", "PostgreSQL: one bare commit of the same bytes", "ms"},
		{"turn.commits", "PostgreSQL: commits of one step", ""},
		{"follow", "PostgreSQL: a delta seen at another replica while 100 runs stream, 95th percentile", "ms"},
	} {
		s.add("PG."+f.id, f.name, f.unit, all[f.id])
	}
	return nil
}
