package tenon_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// metricName matches the name of a metric as the code registers it, and as an expression uses it.
var metricName = regexp.MustCompile(`\btenon_[a-z_]+`)

// TestOperationsMetrics compares the expressions of the Prometheus rules and of the Grafana dashboard with the metrics
// that the code has, and checks that each rule says what to do.
func TestOperationsMetrics(t *testing.T) {
	known := map[string]bool{}
	var sources []string
	for _, pattern := range []string{"telemetry/*.go", "httpapi/metrics.go"} {
		list, _ := filepath.Glob(pattern) // the patterns are valid
		sources = append(sources, list...)
	}
	for _, path := range sources {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(path, "_test.go") {
			for _, name := range regexp.MustCompile(`"tenon_[a-z_]+"`).FindAllString(string(text), -1) {
				known[strings.Trim(name, `"`)] = true
			}
		}
	}
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	read := func(name string, parse func([]byte, any) error, v any) {
		text, err := os.ReadFile(filepath.Join("docs", "operations", name))
		if err == nil {
			err = parse(text, v)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	read("tenon.rules.yaml", func(b []byte, v any) error { return yaml.Unmarshal(b, v) }, &rules)
	read("tenon.dashboard.json", json.Unmarshal, &board)
	expressions := map[string]string{}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			expressions["alert "+r.Alert] = r.Expr
			if r.Annotations["summary"] == "" || r.Annotations["remedy"] == "" {
				t.Errorf("alert %s has no summary or remedy", r.Alert)
			}
		}
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			expressions["panel "+p.Title] = target.Expr
		}
	}
	if len(known) < 15 || len(expressions) < 15 {
		t.Fatalf("%d metrics and %d expressions were found", len(known), len(expressions))
	}
	for where, expr := range expressions {
		for _, name := range metricName.FindAllString(expr, -1) {
			if !known[name] && !known[strings.TrimSuffix(name, "_bucket")] {
				t.Errorf("%s uses %s, and there is no such metric", where, name)
			}
		}
	}
}
