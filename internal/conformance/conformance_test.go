// Package conformance tests tenon as a client of both protocol eras with the public conformance suite of MCP
// (@modelcontextprotocol/conformance).
//
//	make conformance ──► the suite (npm) ──starts──► this test binary as a client ──► servers, mcp, transport
//	                        └────────── the suite's own HTTP servers ◄──────────────────┘
//
// The client is package servers as in the product, with a few lines of code for each scenario
// (client_test.go). Every scenario in the suite's frozen list of required scenarios of a revision must pass.
// Extensions and later scenarios run too; they are shown as skipped, with their result. A scenario without
// any check proves nothing and is reported as such.
package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// scenario is the environment variable with which the suite selects the scenario of its client. If it is set,
// the test binary is the client.
const scenario = "MCP_CONFORMANCE_SCENARIO"

func TestMain(m *testing.M) {
	if name := os.Getenv(scenario); name != "" {
		ctx, cancel := context.WithTimeout(context.Background(), 55*time.Second) // before the suite's own timeout
		defer cancel()
		if err := client(ctx, name, os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// check is one result of the suite.
type check struct {
	ID, Status, ErrorMessage string
}

// outcome is the result of a scenario.
type outcome struct {
	name   string
	checks []check
	stderr string
}

func TestClient_HD_FR_003(t *testing.T) {
	dir := os.Getenv("TENON_CONFORMANCE_DIR")
	if dir == "" {
		t.Skip("needs Node 22 and a package from npm: make conformance installs them and runs this")
	}
	suite := filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance")
	node := findNode(t, dir)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(self, " ") {
		t.Fatalf("the suite splits its command at blanks, and %s has one; set GOTMPDIR", self)
	}
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			required := requirements(t, filepath.Join(suite, "requirements", revision+".yaml"), "client")
			out := t.TempDir()
			ctx, cancel := context.WithTimeout(t.Context(), 270*time.Second)
			defer cancel()
			cmd := exec.CommandContext(ctx, node, filepath.Join(suite, "dist", "index.js"),
				"client", "--command", self, "--requirements", revision, "--timeout", "60000", "-o", out)
			log, err := cmd.CombinedOutput() // the checks are more precise than the status
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
				t.Fatalf("the suite did not run: %v\n%s", err, log)
			}
			outcomes := collect(t, out)
			for _, name := range required {
				if !slices.ContainsFunc(outcomes, func(o outcome) bool { return o.name == name }) {
					t.Errorf("the required scenario %s did not run\n%s", name, log)
				}
			}
			t.Logf("%d scenarios are required, %d ran", len(required), len(outcomes))
			for _, o := range outcomes {
				t.Run(o.name, func(t *testing.T) { o.judge(t, slices.Contains(required, o.name)) })
			}
		})
	}
}

// judge fails the test of a failed required scenario, and reports the results of the others.
func (o outcome) judge(t *testing.T, required bool) {
	count := map[string]int{}
	var wrong []string
	for _, c := range o.checks {
		count[c.Status]++
		if c.Status == "FAILURE" || c.Status == "WARNING" {
			wrong = append(wrong, strings.TrimSuffix(fmt.Sprintf("%s %s: %s", c.Status, c.ID, c.ErrorMessage), ": "))
		}
	}
	proof := count["SUCCESS"] + count["FAILURE"]
	switch {
	case proof == 0 && !required:
		t.Skip("vacuous: no checks")
	case len(wrong) > 0 && required:
		t.Errorf("%s\n%s", strings.Join(wrong, "\n"), o.stderr)
	case proof == 0:
		t.Error("required, but without any check")
	case len(wrong) > 0:
		t.Skipf("not scored: %d of %d checks fail, first %s", len(wrong), proof, wrong[0])
	case !required:
		t.Skipf("not scored: all %d checks pass", proof)
	default:
		t.Logf("%d checks", proof)
	}
}

var stamp = regexp.MustCompile(`-\d{4}-\d\d-\d\dT[\d-]+Z$`)

// collect reads the results of the suite: one folder for each scenario.
func collect(t *testing.T, dir string) []outcome {
	t.Helper()
	var outcomes []outcome
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "checks.json" {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, filepath.Dir(path))
		if err != nil {
			return err
		}
		o := outcome{name: stamp.ReplaceAllString(filepath.ToSlash(name), "")}
		stderr, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "stderr.txt")) // the file is optional
		o.stderr = string(stderr)
		outcomes = append(outcomes, o)
		return json.Unmarshal(b, &outcomes[len(outcomes)-1].checks)
	})
	if err != nil {
		t.Fatal(err)
	}
	return outcomes
}

// requirements reads the list "client" or "server" of the suite's frozen file.
func requirements(t *testing.T, file, side string) []string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), "\n"+side+":\n")
	if !ok {
		t.Fatalf("%s has no list of %ss", file, side)
	}
	var names []string
	for line := range strings.Lines(rest) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
		if !ok {
			break
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		t.Fatalf("%s requires nothing of a %s", file, side)
	}
	return names
}

// findNode prefers the Node that was installed with the suite.
func findNode(t *testing.T, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "node_modules", "node-*", "bin", "node"))
	if err == nil && len(found) > 0 {
		return found[0]
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("the suite needs Node 22: %v", err)
	}
	return node
}
