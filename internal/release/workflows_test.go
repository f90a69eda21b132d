package main

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
)

// ghStandIn imitates gh with two releases. The older one has no documentation; the variable NONE takes the other's away.
const ghStandIn = `#!/bin/sh
case "$1 $2 $3" in
"release list "*) printf 'v1.2.3\nv0.0.1\n' ;;
"release view v1.2.3") echo checksums.txt; [ -n "$NONE" ] || echo tenon_1.2.3_docs.tar.gz ;;
"release view v0.0.1") echo checksums.txt ;;
"release download v1.2.3") tar -czf archives/tenon_1.2.3_docs.tar.gz -C made v1.2.3 ;;
*) echo "gh: $*" >&2; exit 1 ;;
esac
`

// TestREL_siteWorkflow runs the script of the workflow that publishes the documentation, with stand-ins of gh and go. A
// release only starts the workflow on the default branch, from which GitHub lets it publish.
func TestREL_siteWorkflow(t *testing.T) {
	text, err := os.ReadFile("../../.github/workflows/site.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		Jobs map[string]struct {
			If          string
			Environment any
			Steps       []struct{ Name, Run string }
		}
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		t.Fatal(err)
	}
	dispatch, publish := workflow.Jobs["dispatch"], workflow.Jobs["publish"]
	if dispatch.Environment != nil || dispatch.If != "github.event_name == 'release'" ||
		publish.If != "github.event_name == 'workflow_dispatch'" {
		t.Errorf("the event of a release may publish: %+v, %+v", dispatch, publish)
	}
	var script string
	for _, step := range publish.Steps {
		if step.Name == "Collect the versions" {
			script = step.Run
		}
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs bash")
	}
	for _, tt := range []struct {
		name, none, want string
		ok               bool
	}{
		{"one without", "", "::warning::release v0.0.1 has no", true},
		{"all without", "1", "::error::no release has a", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{"bin/gh": ghStandIn, "bin/go": "#!/bin/sh\necho \"go $*\"\n",
				"made/v1.2.3/index.html": "page"} {
				if err := writeFile(filepath.Join(dir, name), []byte(text)); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command(bash, "-eo", "pipefail", "-c", script)
			cmd.Dir = dir
			cmd.Env = []string{"PATH=" + filepath.Join(dir, "bin") + string(filepath.ListSeparator) + os.Getenv("PATH"),
				"NONE=" + tt.none}
			out, err := cmd.CombinedOutput()
			if (err == nil) != tt.ok || !strings.Contains(string(out), tt.want) {
				t.Errorf("%v: %s", err, out)
			}
			_, err = os.Stat(filepath.Join(dir, "site", "v1.2.3", "index.html"))
			if (err == nil) != tt.ok {
				t.Errorf("the page: %v", err)
			}
		})
	}
}

// TestREL_dependabot checks that each file with versions of dependencies is in a folder that is asked for updates.
func TestREL_dependabot(t *testing.T) {
	text, err := os.ReadFile("../../.github/dependabot.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var asked struct {
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directory   string
			Directories []string
		}
	}
	if err := yaml.Unmarshal(text, &asked); err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, u := range asked.Updates {
		got[u.Ecosystem] = append(u.Directories, strings.Fields(u.Directory)...)
	}
	for ecosystem, args := range map[string][]string{"gomod": {"ls-files", "go.mod", "**/go.mod"},
		"npm": {"ls-files", "**/package-lock.json"}, "pip": {"grep", "-l", "-e", "--hash=sha256:", "--", "*.txt"}} {
		out, err := exec.Command("git", append([]string{"-C", "../.."}, args...)...).Output()
		if err != nil {
			t.Skipf("not a checkout of git: %v", err)
		}
		var want []string
		for file := range strings.Lines(string(out)) {
			want = append(want, path.Join("/", path.Dir(strings.TrimSpace(file))))
		}
		slices.Sort(want)
		if diff := cmp.Diff(slices.Compact(want), slices.Sorted(slices.Values(got[ecosystem]))); diff != "" {
			t.Errorf("%s: directories of dependabot.yaml (-in the repository +asked):\n%s", ecosystem, diff)
		}
	}
}

// TestREL_ciWorkflow checks that CI has a job with its own time for the whole release, and that it is a target of make.
func TestREL_ciWorkflow(t *testing.T) {
	text, err := os.ReadFile("../../.github/workflows/ci.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		Jobs map[string]struct {
			Minutes int `yaml:"timeout-minutes"`
			Steps   []struct{ Run string }
		}
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name, job := range workflow.Jobs {
		if job.Minutes == 0 {
			t.Errorf("job %s has no time after which it ends", name)
		}
		for _, step := range job.Steps {
			got[name] += step.Run
		}
	}
	want := map[string]string{"check": ".ci/run", "release": ".ci/run release-dry-run"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the jobs run (-want +got):\n%s", diff)
	}
	if runtime.GOOS == "windows" {
		t.Skip("needs make and bash")
	}
	plan := command(t, "../..", "make", "--dry-run", "--no-print-directory", "release-dry-run")
	for _, words := range []string{"./internal/release", " all 0.0.0-dev.1 ", "-run TestRelease "} {
		if !strings.Contains(plan, words) {
			t.Errorf("make release-dry-run does not run %q:\n%s", words, plan)
		}
	}
}
