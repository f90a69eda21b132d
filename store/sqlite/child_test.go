package sqlite

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// Some tests need a separate process, to kill it or to give it a small disk. It is the test binary, started again with
// these variables.
const (
	envChild = "TENON_STORE_CHILD" // what to do
	envPath  = "TENON_STORE_PATH"  // of the store
	envSeed  = "TENON_STORE_SEED"
	envLong  = "TENON_KILLS" // number of repetitions, instead of the few in go test
)

// childMain does the task that the variable names, and ends the process.
func childMain() {
	what := os.Getenv(envChild)
	if what == "" {
		return
	}
	do := map[string]func(path string) error{"open": openChild, "fill": fillChild, "refuse": refuseChild}[what]
	if err := do(os.Getenv(envPath)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// childCommand prepares the process.
func childCommand(ctx context.Context, t *testing.T, what, path string, seed int) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, exe, "-test.run=^$")
	cmd.Env = append(os.Environ(), envChild+"="+what, envPath+"="+path, envSeed+"="+strconv.Itoa(seed))
	return cmd
}

// openChild opens a store and closes it.
func openChild(path string) error {
	s, err := Open(context.Background(), Config{Path: path})
	if err != nil {
		return err
	}
	return s.Close()
}

// times returns how often something is repeated: a few times in go test, or as often as the environment says.
func times(t *testing.T, few int) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv(envLong))
	if err != nil {
		return few
	}
	return max(few, n)
}
