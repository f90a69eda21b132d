package deploycheck

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const deploy = "../../deploy"

var update = flag.Bool("update", false, "write deploy/kubernetes")

// variants are the manifests of deploy/kubernetes with the values that differ from the defaults.
var variants = map[string]map[string]any{
	"sqlite.yaml":   {},
	"postgres.yaml": {"postgres": true},
}

// files is .Files of Helm.
type files struct{}

// Get returns the text of a file of the chart. A missing file is an error; Helm would return "".
func (files) Get(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(deploy, "chart", filepath.FromSlash(name)))
	return string(text), err
}

// functions are the functions of Helm that the chart uses.
var functions = template.FuncMap{
	"indent": func(n int, text string) string {
		pad := strings.Repeat(" ", n)
		return pad + strings.ReplaceAll(text, "\n", "\n"+pad)
	},
	"toJson": func(v any) (string, error) {
		text, err := json.Marshal(v)
		return string(text), err
	},
	"add": func(list ...any) (sum int64, err error) {
		for _, v := range list {
			switch n := v.(type) {
			case int:
				sum += int64(n)
			case float64: // numbers of values.yaml
				sum += int64(n)
			default:
				return 0, fmt.Errorf("%v is no number", v)
			}
		}
		return sum, nil
	},
}

// render renders the chart with some values.
func render(t *testing.T, values map[string]any) string {
	t.Helper()
	all := map[string]any{}
	text, err := os.ReadFile(filepath.Join(deploy, "chart", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		t.Fatal(err)
	}
	for name, v := range values {
		if _, ok := all[name]; !ok {
			t.Fatalf("values.yaml has no %s", name)
		}
		all[name] = v
	}
	path := filepath.Join(deploy, "chart", "templates", "tenon.yaml")
	tmpl, err := template.New("tenon.yaml").Option("missingkey=error").Funcs(functions).ParseFiles(path)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := tmpl.Execute(&out, map[string]any{"Values": all, "Files": files{},
		"Release": map[string]any{"Name": "tenon"}}); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder // text editors and git dislike spaces at the ends of lines
	for line := range strings.Lines(out.String()) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}

// TestREL_manifests compares the manifests of deploy/kubernetes with the rendered chart.
func TestREL_manifests(t *testing.T) {
	for name, values := range variants {
		t.Run(name, func(t *testing.T) {
			want := "# Made from deploy/chart: go test -C internal/deploycheck . -update\n" + render(t, values)
			path := filepath.Join(deploy, "kubernetes", name)
			if *update {
				if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, string(got)); diff != "" {
				t.Errorf("it is not what the chart renders; run with -update (-chart +file):\n%s", diff)
			}
		})
	}
}

// TestREL_chart checks Chart.yaml, and that other values come through.
func TestREL_chart(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(deploy, "chart", "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var chart struct {
		APIVersion  string `json:"apiVersion"`
		Name        string
		Description string
		Type        string
		Version     string
		AppVersion  string
		Home        string
		Sources     []string
		KubeVersion string
	}
	if err := yaml.UnmarshalStrict(text, &chart); err != nil {
		t.Fatal(err)
	}
	if chart.APIVersion != "v2" || chart.Name != "tenon" || chart.Version == "" {
		t.Errorf("chart %+v", chart)
	}
	got := render(t, map[string]any{"config": "version: 1\nserve: {}", "storageClass": "fast", "storage": "1Gi",
		"secret": "mine", "tlsSecret": "cert"})
	for _, want := range []string{"    version: 1\n    serve: {}\n", "storageClassName: fast\n", "storage: 1Gi", "name: mine",
		"secretName: cert"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	decode(t, got)
}
