package tenon_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// phrases are patterns of phrases that make a text hard to read. They apply to comments and texts of Go files and to
// Markdown. If the group named ok is part of a match, the phrase is permitted there.
var phrases = map[string]*regexp.Regexp{
	"told": regexp.MustCompile(`\b(?:is|are|was|were|be|been|being) told\b|\btold of\b|\btells? of\b|` +
		`\btells? (?:whether|what|that|the model|how)\b`),
	"comes to":          regexp.MustCompile(`\b(?:comes?|came) to\b(?P<ok> (?:rest|pass))?`),
	"what there is":     regexp.MustCompile(`\bwhat there (?:is|are|was)\b|\b(?:is|are) there (?:already|for it|for them)\b`),
	"stands":            regexp.MustCompile(`\bstands? (?:in|for|beside|behind|before|at|there|with)\b`),
	"is had":            regexp.MustCompile(`\b(?:is|are|was) had\b|\bhas what\b`),
	"that of":           regexp.MustCompile(`\b(?:that|those) of\b|\bthose (?:that|which|who|with|whose)\b`),
	"What as subject":   regexp.MustCompile(`(?:^ ?|[.;:] )What [a-z]+ (?P<ok>[^.;]*\?)?`),
	"Who as subject":    regexp.MustCompile(`(?:^ ?|[.;:] )(?:Who|Whoever|Whose) [a-z](?P<ok>[^.;]*\?)?`),
	"goes on":           regexp.MustCompile(`\b(?:goes?|going|went|gone) on with\b|\bgoes on\b`),
	"anew, mend, deed":  regexp.MustCompile(`\banew\b|\bmend(?:s|ed|ing)?\b|\bdeeds?\b|\bno other\b|\bas well as it\b`),
	"nil: nobody":       regexp.MustCompile(`\b[Nn]il: (?:nobody|none|nothing|no )`),
	"of its own":        regexp.MustCompile(`\bof (?:its|their|our) own\b`),
	"hidden assignment": nil, // found by go/ast: see hiddenStatements
	"long line":         nil, // over maxColumns
}

const maxColumns = 120

// exceptions are the permitted findings: the kind, the file and a part of the line. There may be at most 30.
var exceptions = []struct{ kind, file, part, why string }{
	{"long line", "eval/suite.go", "StopReason string", "a struct tag cannot be divided"},
	{"long line", "model/config.go", "Provider string", "a struct tag cannot be divided"},
	{"What as subject", "store/storetest/search.go", "What is the", "a question of a user"},
}

// ceilings are the numbers of permitted findings in packages and folders of docs that are not rewritten yet. The
// numbers may only fall: go test . -run TestProse -update lowers them and deletes rows of 0. A package without a row
// may have findings only if other packages have as many fewer, so that code can be moved.
var ceilings = map[string]int{}

var update = flag.Bool("update", false, "lower the ceilings of prose_test.go to the present numbers")

// lowerCeilings rewrites the table in this file.
func lowerCeilings(t *testing.T, found map[string][]finding) {
	t.Helper()
	const file, begin = "prose_test.go", "var ceilings = map[string]int{\n"
	before, rest, ok := strings.Cut(read(t, file), begin)
	_, after, ended := strings.Cut(rest, "\n}\n")
	if !ok || !ended {
		t.Fatalf("%s has no table of ceilings", file)
	}
	var rows strings.Builder
	for _, dir := range slices.Sorted(maps.Keys(ceilings)) {
		if n := min(ceilings[dir], len(found[dir])); n > 0 {
			fmt.Fprintf(&rows, "\t%q: %d,\n", dir, n)
		}
	}
	b, err := format.Source([]byte(before + begin + rows.String() + "}\n" + after))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// finding is one place.
type finding struct {
	file string
	line int
	kind string
	text string
}

func (f finding) String() string { return fmt.Sprintf("%s:%d: %s: %s", f.file, f.line, f.kind, f.text) }

// TestProse checks the phrases in comments, texts and docs, the length of lines, and that no if or switch has a
// statement in its header that its condition does not use.
func TestProse(t *testing.T) {
	if len(exceptions) > 30 {
		t.Errorf("%d exceptions", len(exceptions))
	}
	found := map[string][]finding{}
	used := make([]bool, len(exceptions))
	for _, f := range proseOfRepo(t) {
		i := slices.IndexFunc(exceptions, func(e struct{ kind, file, part, why string }) bool {
			return e.kind == f.kind && e.file == f.file && strings.Contains(f.text, e.part)
		})
		if i >= 0 {
			used[i] = true
			continue
		}
		dir := path.Dir(f.file)
		found[dir] = append(found[dir], f)
	}
	for i, e := range exceptions {
		if !used[i] {
			t.Errorf("the exception of %s in %s is not needed", e.kind, e.file)
		}
	}
	if *update {
		lowerCeilings(t, found)
	}
	room, total := 0, 0
	for dir, most := range ceilings {
		room += max(0, most-len(found[dir]))
	}
	for _, dir := range slices.Sorted(maps.Keys(found)) {
		n := len(found[dir])
		total += n
		most, listed := ceilings[dir]
		if !listed && n <= room {
			room -= n
			continue
		}
		if n > most {
			t.Errorf("%s has %d findings, but at most %d are allowed:\n%s", dir, n, most, list(found[dir]))
		}
	}
	t.Logf("%d findings in all; the ceilings allow %d more", total, room)
	if out := os.Getenv("TENON_PROSE"); out != "" { // a folder, or "all": print its findings and the rows of the table
		for _, dir := range slices.Sorted(maps.Keys(found)) {
			t.Logf("\t%q: %d,", dir, len(found[dir]))
			if out == dir || out == "all" {
				t.Logf("\n%s", list(found[dir]))
			}
		}
	}
}

func list(found []finding) string {
	var b strings.Builder
	if os.Getenv("TENON_PROSE") == "" {
		found = found[:min(len(found), 20)]
	}
	for _, f := range found {
		fmt.Fprintf(&b, "\t%s\n", f)
	}
	return b.String()
}

// proseOfRepo returns all findings in the order of the files. It leaves out tests, golden files and generated files.
func proseOfRepo(t *testing.T) (all []finding) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch base := d.Name(); {
		case d.IsDir() && (slices.Contains([]string{"testdata", "node_modules", "dist", "testresults", "test-results"}, base) ||
			name != "." && strings.HasPrefix(base, ".") || name == "docs/reference/cli" ||
			name == "internal/referees" || name == "internal/rivals"):
			return fs.SkipDir
		case d.IsDir():
		case strings.HasSuffix(base, ".md"):
			all = append(all, proseOfMarkdown(t, name)...)
		case strings.HasSuffix(base, ".go") && !strings.HasSuffix(base, "_test.go") && !strings.Contains(base, ".gen."):
			all = append(all, proseOfGo(t, name)...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func proseOfMarkdown(t *testing.T, name string) (all []finding) {
	text := read(t, name)
	if strings.Contains(strings.ToLower(text[:min(len(text), 300)]), "do not edit") { // generated
		return nil
	}
	fence := false
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fence = !fence
		}
		if fence {
			continue
		}
		all = append(all, inText(name, i+1, line)...)
		if !strings.HasPrefix(line, "|") && isLong(line) {
			all = append(all, finding{name, i + 1, "long line", start(line)})
		}
	}
	return all
}

func proseOfGo(t *testing.T, name string) (all []finding) {
	text := read(t, name)
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if ast.IsGenerated(file) {
		return nil
	}
	for _, group := range file.Comments {
		for _, c := range group.List {
			for i, line := range strings.Split(strings.TrimPrefix(strings.TrimPrefix(c.Text, "//"), "/*"), "\n") {
				all = append(all, inText(name, set.Position(c.Pos()).Line+i, line)...)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			s, err := strconv.Unquote(n.Value)
			if n.Kind != token.STRING || err != nil {
				return true
			}
			for i, line := range strings.Split(s, "\n") {
				all = append(all, inText(name, set.Position(n.Pos()).Line+i, line)...)
			}
		case *ast.ImportSpec, *ast.Field:
			_, isField := n.(*ast.Field)
			return isField
		case ast.Stmt:
			if hidden := hiddenStatement(n); hidden != nil {
				all = append(all, finding{name, set.Position(n.Pos()).Line, "hidden assignment", shown(hidden)})
			}
		}
		return true
	})
	for i, line := range strings.Split(text, "\n") {
		if isLong(line) {
			all = append(all, finding{name, i + 1, "long line", start(line)})
		}
	}
	slices.SortStableFunc(all, func(a, b finding) int { return a.line - b.line })
	return all
}

// inText finds the phrases in a line of prose.
func inText(file string, line int, text string) (all []finding) {
	for _, kind := range slices.Sorted(maps.Keys(phrases)) {
		re := phrases[kind]
		if re == nil {
			continue
		}
		allowed := re.SubexpIndex("ok")
		for _, m := range re.FindAllStringSubmatchIndex(text, -1) {
			if allowed < 0 || m[2*allowed] < 0 {
				all = append(all, finding{file, line, kind, strings.TrimSpace(text)})
				break
			}
		}
	}
	return all
}

var webAddress = regexp.MustCompile(`https?://[^\s)>"]+`)

// isLong reports whether a line is too long, not because of a URL. A tab counts as four columns.
func isLong(line string) bool {
	line = webAddress.ReplaceAllString(strings.ReplaceAll(line, "\t", "    "), "")
	return len([]rune(line)) > maxColumns
}

func start(line string) string {
	r := []rune(strings.TrimSpace(line))
	return string(r[:min(len(r), 60)]) + " …"
}

// hiddenStatement returns the statement in the header of an if or switch if the condition does not use it.
func hiddenStatement(n ast.Stmt) ast.Stmt {
	var init ast.Stmt
	var cond []ast.Node
	switch n := n.(type) {
	case *ast.IfStmt:
		init, cond = n.Init, []ast.Node{n.Cond}
	case *ast.SwitchStmt:
		init = n.Init
		if n.Tag != nil {
			cond = []ast.Node{n.Tag}
			break
		}
		for _, c := range n.Body.List { // in a switch, the cases are the conditions
			for _, e := range c.(*ast.CaseClause).List {
				cond = append(cond, e)
			}
		}
	case *ast.TypeSwitchStmt:
		init, cond = n.Init, []ast.Node{n.Assign}
	}
	if init == nil {
		return nil
	}
	var set []string
	switch init := init.(type) {
	case *ast.AssignStmt:
		for _, e := range init.Lhs {
			set = append(set, types.ExprString(e))
		}
	case *ast.IncDecStmt:
		set = []string{types.ExprString(init.X)}
	}
	used := false
	for _, c := range cond {
		ast.Inspect(c, func(n ast.Node) bool {
			if e, ok := n.(ast.Expr); ok && slices.Contains(set, types.ExprString(e)) {
				used = true
			}
			return !used
		})
	}
	if used {
		return nil
	}
	return init
}

func shown(s ast.Stmt) string {
	if a, ok := s.(*ast.AssignStmt); ok {
		return types.ExprString(a.Lhs[0]) + " " + a.Tok.String() + " …"
	}
	return "a statement in the header"
}
