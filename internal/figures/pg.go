package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// takeoverRuns is the number of runs of the replica that is killed for PG.takeover.
const takeoverRuns = 1000

// measurePG measures the store in PostgreSQL. Each round is a run of store/postgres.TestFigures against a server of its
// own, with fsync: only that package imports the driver.
func measurePG(s *session) error {
	all, err := pgRounds(s, "^TestFigures$", "./store/postgres")
	if err != nil {
		return err
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

// measureTakeover measures how long another replica takes beyond the lease to work on all runs of a killed one.
func measureTakeover(s *session) error {
	all, err := pgRounds(s, "^TestReplicas_Takeover$", "./internal/kill",
		fmt.Sprint("TENON_TAKEOVER_RUNS=", takeoverRuns))
	if err != nil {
		return err
	}
	s.add("PG.takeover", fmt.Sprintf("PostgreSQL: until %d runs of a killed replica are at work again, beyond the "+
		"lease", takeoverRuns), "s", all["takeover"])
	return nil
}

// pgRounds runs a test that measures, once for each round, each time against a new server with fsync. It returns
// the values that the test wrote.
func pgRounds(s *session, test, pkg string, env ...string) (map[string][]float64, error) {
	return databaseRounds(s, "postgres.sh", []string{"go", "test", "-count=1", "-run", test, pkg},
		append(env, "TENON_POSTGRES_FSYNC=on")...)
}

// databaseRounds runs a script of .ci that starts a database for a test that measures, once for each round. It returns
// the values that the test wrote.
func databaseRounds(s *session, script string, args []string, env ...string) (map[string][]float64, error) {
	all := map[string][]float64{}
	for round := range s.rounds {
		file := filepath.Join(s.tmp, fmt.Sprintf("pg-%d.json", round))
		cmd := exec.CommandContext(s.ctx, filepath.Join(s.root, ".ci", script), args...)
		cmd.Dir = s.root
		cmd.Env = append(append(os.Environ(), "TENON_FIGURES="+file), env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, out)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var values map[string]float64
		if err := json.Unmarshal(b, &values); err != nil {
			return nil, err
		}
		for id, v := range values {
			all[id] = append(all[id], v)
		}
	}
	return all, nil
}
