package deploycheck

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

const operations = "../../docs/operations"

// TestREL_rules decodes the alerts strictly, and parses their expressions and durations as Prometheus does.
// TestOperationsMetrics in the root checks that the metrics exist.
func TestREL_rules(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(operations, "tenon.rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []struct {
				Alert       string            `json:"alert"`
				Expr        string            `json:"expr"`
				For         string            `json:"for"`
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Groups) != 1 || len(file.Groups[0].Rules) < 7 {
		t.Fatalf("the rules are %+v", file)
	}
	for _, r := range file.Groups[0].Rules {
		if _, err := parser.NewParser(parser.Options{}).ParseExpr(r.Expr); err != nil {
			t.Errorf("%s: %s: %v", r.Alert, r.Expr, err)
		}
		if _, err := model.ParseDuration(r.For); r.For != "" && err != nil {
			t.Errorf("%s: %v", r.Alert, err)
		}
	}
}

// TestREL_dashboard decodes the dashboard into Grafana's types, with those of its panels and queries, and
// checks what the types do not say.
func TestREL_dashboard(t *testing.T) {
	runtime := cog.NewRuntime()
	runtime.RegisterPanelcfgVariant(timeseries.VariantConfig())
	runtime.RegisterDataqueryVariant(prometheus.VariantConfig())
	text, err := os.ReadFile(filepath.Join(operations, "tenon.dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard.Dashboard
	for name, err := range map[string]error{"decode": json.Unmarshal(text, &d), "validate": d.Validate()} {
		var list cog.BuildErrors // it may be empty
		if errors.As(err, &list) && len(list) == 0 {
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(d.Panels) < 10 {
		t.Errorf("%d panels", len(d.Panels))
	}
	ids := map[uint32]string{}
	cells := map[[2]uint32]string{} // the grid has 24 columns
	for _, row := range d.Panels {
		p := row.Panel
		if p == nil || p.Title == nil || p.Id == nil || p.GridPos == nil {
			t.Fatalf("a panel without title, id or position: %+v", row)
		}
		if other, taken := ids[*p.Id]; taken {
			t.Errorf("panels %q and %q have the id %d", other, *p.Title, *p.Id)
		}
		ids[*p.Id] = *p.Title
		if p.Type != "timeseries" {
			t.Errorf("panel %q has the type %s, which this test does not decode", *p.Title, p.Type)
		}
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %q is wider than the grid", *p.Title)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				cell := [2]uint32{p.GridPos.X + x, p.GridPos.Y + y}
				if other, taken := cells[cell]; taken {
					t.Fatalf("panels %q and %q overlap", other, *p.Title)
				}
				cells[cell] = *p.Title
			}
		}
		checkQueries(t, d, *p)
	}
}

// checkQueries checks the expressions of a panel, and that its data source is the variable of the dashboard.
func checkQueries(t *testing.T, d dashboard.Dashboard, p dashboard.Panel) {
	t.Helper()
	if len(d.Templating.List) != 1 || p.Datasource == nil || p.Datasource.Uid == nil ||
		*p.Datasource.Uid != "${"+d.Templating.List[0].Name+"}" {
		t.Errorf("panel %q does not use the data source that a person chooses", *p.Title)
	}
	if len(p.Targets) == 0 {
		t.Errorf("panel %q shows nothing", *p.Title)
	}
	for _, target := range p.Targets {
		q, ok := target.(*prometheus.Dataquery)
		if !ok {
			t.Errorf("panel %q has a query of type %T", *p.Title, target)
			continue
		}
		if _, err := parser.NewParser(parser.Options{}).ParseExpr(q.Expr); err != nil {
			t.Errorf("panel %q: %s: %v", *p.Title, q.Expr, err)
		}
	}
}
