// Package livebench reads the tools and tasks of LiveMCPBench and scores the search of package catalog on
// them. The data are not part of this repository; the caller names their folder. The procedure follows the
// reference implementation of the benchmark, so that figures can be compared:
//
//   - A step is a line that describes an action. Its correct tool is on the same line of the tool list.
//     Only tasks with equal numbers of steps and tools count, which results in 95 pairs.
//   - A task is the complete question. Its correct tools are all of its tools. There are 94 tasks.
//   - Tools are compared by the letters and digits of their names.
//
// The figures P11 use this package, and its own test checks a lower bound. Package catalog does not depend on
// it.
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

// Load reads the servers and their tools. The error wraps fs.ErrNotExist if the data do not exist.
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
				src.Tools = append(src.Tools, tenon.Tool{Remote: one.Name, Description: one.Description,
					Input: one.InputSchema})
			}
		}
		sources = append(sources, src)
	}
	return sources, nil
}

// Scores holds the results of the search.
type Scores struct {
	Steps                int     // number of pairs
	Step1, Step5, Step10 int     // pairs with a correct tool among the first results
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
		return slices.IndexFunc(s.Index().Search(query, 10),
			func(h catalog.Hit) bool { return plain(h.Tool.Remote) == plain(tool) })
	}
	for _, task := range tasks {
		steps, names := lines(task.Metadata.Steps), lines(task.Metadata.Tools)
		matched, found := 0, 0
		for i, n := range names {
			if !known[plain(n)] {
				continue
			}
			matched++
			if place(task.Question, n) >= 0 {
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

// plain returns the letters and digits of a name in lower case.
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
