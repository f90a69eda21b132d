// Package livebench reads the tools and tasks of LiveMCPBench and scores the
// search of package catalog on them. The data are not part of this repository:
// they lie in the folder that the caller names. The procedure is that of the
// data's reference, so that figures can be compared:
//
//   - a step is a line that says what is done, its gold the tool of the same line;
//     only tasks with as many steps as tools count, 95 pairs;
//   - a task is the whole question, its gold all of its tools, 94 tasks;
//   - a tool is right where its name is, letters and digits alone.
//
// The figures P11 are made with it, and its own test holds a floor under them.
// Package catalog knows nothing of it.
package livebench

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
)

// Load reads the servers with their tools. The error wraps fs.ErrNotExist where
// the data are not there.
func Load(dir string) ([]catalog.Source, error) {
	b, err := os.ReadFile(filepath.Join(dir, "tools.json"))
	if err != nil {
		return nil, err
	}
	var list []struct {
		Name        string
		Description string
		Tools       map[string]struct {
			Tools []struct {
				Name, Description string
				InputSchema       json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, err
	}
	var sources []catalog.Source
	for _, s := range list {
		src := catalog.Source{Server: s.Name, About: s.Description}
		for _, of := range s.Tools {
			for _, one := range of.Tools {
				src.Tools = append(src.Tools, tenon.Tool{Remote: one.Name, Description: one.Description, Input: one.InputSchema})
			}
		}
		sources = append(sources, src)
	}
	return sources, nil
}

// Scores are hits of the search.
type Scores struct {
	Steps                int     // pairs
	Step1, Step5, Step10 int     // with a right tool among the first
	Tasks                int     //
	Task10               float64 // mean share of a task's tools among the first 10
	Queries              []string
}

// Score searches for every step and every task.
func Score(s *catalog.Snapshot, dir string) (Scores, error) {
	var r Scores
	b, err := os.ReadFile(filepath.Join(dir, "all_annotations.json"))
	if err != nil {
		return r, err
	}
	var tasks []struct {
		Question string
		Metadata struct{ Steps, Tools string } `json:"Annotator Metadata"`
	}
	if err := json.Unmarshal(b, &tasks); err != nil {
		return r, err
	}
	known := map[string]bool{}
	for _, t := range s.Tools() {
		known[plain(t.Remote)] = true
	}
	place := func(query, tool string) int {
		r.Queries = append(r.Queries, query)
		return slices.IndexFunc(s.Index().Search(query, 10), func(h catalog.Hit) bool { return plain(h.Tool.Remote) == plain(tool) })
	}
	for _, task := range tasks {
		steps, names := lines(task.Metadata.Steps), lines(task.Metadata.Tools)
		matched, found := 0, 0
		for i, n := range names {
			if !known[plain(n)] {
				continue
			}
			if matched++; place(task.Question, n) >= 0 {
				found++
			}
			if len(steps) == len(names) {
				r.step(place(steps[i], n))
			}
		}
		if matched > 0 {
			r.Tasks++
			r.Task10 += float64(found) / float64(matched)
		}
	}
	r.Task10 /= float64(max(r.Tasks, 1))
	return r, nil
}

func (r *Scores) step(place int) {
	r.Steps++
	if place < 0 {
		return
	}
	r.Step10++
	if place < 5 {
		r.Step5++
	}
	if place == 0 {
		r.Step1++
	}
}

// plain is a name's letters and digits in lower case.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(s))
}

var numbered = regexp.MustCompile(`^\s*\d+[.)]\s*`)

func lines(s string) []string {
	var out []string
	for l := range strings.SplitSeq(s, "\n") {
		if l = strings.TrimSpace(numbered.ReplaceAllString(l, "")); l != "" {
			out = append(out, l)
		}
	}
	return out
}
