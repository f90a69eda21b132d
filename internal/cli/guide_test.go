package cli

import (
	"errors"
	"fmt"
	"html"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon/internal/clitest"
	"github.com/tenonhq/tenon/internal/pty"
)

// The pages of docs/guide and README.md show commands with their output. TestGuide runs them at a terminal, page by
// page, in an empty HOME, and compares. With -update it writes the output into the page.
//
// A console block holds commands after "$ ", each followed by its output. A line "..." stands for any number of lines.
// A comment before a block changes what happens with it:
//
//	<!-- file: NAME -->        writes the block to the file NAME
//	<!-- background -->        starts the command and waits until it has printed the lines shown
//	<!-- types: PROMPT|TEXT -->  types TEXT when the output ends with PROMPT; further pairs follow after "||"
//	<!-- from: FILE -->        the block is a part of FILE in the repository
//	<!-- not run: REASON -->   the block is only read
//
// A yaml block without a comment must be a valid part of a tenon.yaml.

// mostNotRun limits the number of blocks in all pages that are not run.
const mostNotRun = 19

// mostReadmeLines bounds README.md.
const mostReadmeLines = 150

type guideBlock struct {
	language, marker, value string
	first, last             int // lines between the fences: lines[first:last]
}

var markerLine = regexp.MustCompile(`^<!-- (file|background|types|from|not run):? ?(.*?) ?-->$`)

func guideBlocks(lines []string) []guideBlock {
	var all []guideBlock
	var open *guideBlock
	for i, line := range lines {
		fence, ok := strings.CutPrefix(line, "```")
		switch {
		case ok && open == nil:
			open = &guideBlock{language: fence, first: i + 1}
			if m := markerLine.FindStringSubmatch(lines[max(i-1, 0)]); m != nil {
				open.marker, open.value = m[1], m[2]
			}
		case ok:
			open.last = i
			all = append(all, *open)
			open = nil
		}
	}
	return all
}

func guidePages(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "guide", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	return append(pages, filepath.Join("..", "..", "README.md"))
}

// TestGuide runs the commands of README.md and docs/guide and compares their output with what the pages show.
func TestGuide(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("package pty opens terminals on Linux only")
	}
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the pages need %s: %v", program, err)
		}
	}
	for _, page := range guidePages(t) {
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			t.Parallel()
			runGuidePage(t, page)
		})
	}
}

// TestGuideShape limits the number of blocks that are not run, and the length of README.md.
func TestGuideShape(t *testing.T) {
	skipped := 0
	for _, page := range guidePages(t) {
		lines := readLines(t, page)
		for _, b := range guideBlocks(lines) {
			place := fmt.Sprintf("%s:%d", filepath.Base(page), b.first)
			if b.marker == "not run" {
				skipped++
				if b.value == "" {
					t.Errorf("%s: the comment gives no reason", place)
				}
				continue
			}
			switch b.language {
			case "console", "yaml":
			case "go":
				if b.marker != "from" {
					t.Errorf("%s: Go code must come from a file that is compiled: add <!-- from: FILE -->", place)
				}
			default:
				if b.marker == "" {
					t.Errorf("%s: nothing checks a block of language %q", place, b.language)
				}
			}
		}
		if n := len(lines) - 1; filepath.Base(page) == "README.md" && n > mostReadmeLines {
			t.Errorf("README.md has %d lines, more than %d", n, mostReadmeLines)
		}
	}
	if skipped > mostNotRun {
		t.Errorf("%d blocks are not run, more than %d", skipped, mostNotRun)
	}
}

func readLines(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}

// TestPicture checks that the commands in docs/pictures/terminal.svg still print the output that the picture shows.
func TestPicture(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("package pty opens terminals on Linux only")
	}
	page := []string{"<!-- types: dit arguments:|y -->", "```console"}
	y := ""
	for _, m := range regexp.MustCompile(`<text [^>]*y="(\d+)"[^>]*>([^<]*)</text>`).FindAllStringSubmatch(
		strings.Join(readLines(t, filepath.Join("..", "..", "docs", "pictures", "terminal.svg")), "\n"), -1) {
		if text := html.UnescapeString(m[2]); m[1] == y {
			page[len(page)-1] += " " + text
		} else {
			page, y = append(page, text), m[1]
		}
	}
	file := filepath.Join(t.TempDir(), "picture.md")
	if err := os.WriteFile(file, []byte(strings.Join(append(page, "```"), "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	runGuidePage(t, file)
	if t.Failed() {
		t.Log("make pictures draws it again")
	}
}

// guideRun is the state of one page while its commands run.
type guideRun struct {
	t         *testing.T
	page      string
	lines     []string
	session   *pty.Session
	home      string
	programs  string            // the folder with the tested program
	ports     map[string]string // port in the page: port in this run
	processed int               // lines of the page before this index are already in out
	out       []string          // the page with the output of this run
}

// guideHome replaces the temporary HOME in the pages.
const guideHome = "/home/ann"

// shortHome makes an empty HOME whose path is as long as guideHome, so that lines wrap at the same place as in the
// pages.
func shortHome(t *testing.T) string {
	t.Helper()
	for range 1000 {
		home := fmt.Sprintf("/tmp/%04x", rand.IntN(1<<16))
		err := os.Mkdir(home, 0o700)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := os.RemoveAll(home); err != nil {
				t.Error(err)
			}
		})
		return home
	}
	t.Fatal("no name is free in /tmp")
	return ""
}

func runGuidePage(t *testing.T, page string) {
	home := shortHome(t)
	examples, err := filepath.Abs(filepath.Join("..", "..", "examples"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(home, "examples"), os.DirFS(examples)); err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("tenon")
	if err != nil {
		t.Fatal(err)
	}
	port := clitest.FreePort(t)
	session, err := pty.Start(pty.Config{Dir: home, Env: []string{
		"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TENON_NO_PROBE=1", "TENON_KEYRING=off",
		"NO_COLOR=1", "TERM=xterm", "TZ=UTC", "GORACE=atexit_sleep_ms=0",
	}})
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	g := &guideRun{t: t, page: page, lines: readLines(t, page), session: session, home: home,
		programs: filepath.Dir(program), ports: map[string]string{"8420": port}}
	defer func() {
		if err := session.Close(); err != nil {
			t.Errorf("the shell of %s: %v", page, err)
		}
	}()
	for _, b := range guideBlocks(g.lines) {
		g.out = append(g.out, g.lines[g.processed:b.first]...)
		g.processed = b.first
		g.block(b)
		if t.Failed() {
			return
		}
	}
	g.out = append(g.out, g.lines[g.processed:]...)
	if text := strings.Join(g.out, "\n"); *update && text != strings.Join(g.lines, "\n") {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func (g *guideRun) block(b guideBlock) {
	body := g.lines[b.first:b.last]
	switch {
	case b.marker == "not run":
	case b.marker == "from":
		g.from(b, body)
	case b.marker == "file":
		g.must(fmt.Sprintf("mkdir -p \"$(dirname '%[1]s')\"\ncat >'%[1]s' <<'EOF_OF_BLOCK'\n%[2]s\nEOF_OF_BLOCK",
			b.value, strings.Join(body, "\n")))
	case b.marker == "background":
		g.background(b, body)
	case b.language == "yaml":
		g.validate(b, body)
	case b.language == "console":
		g.console(b, body)
	}
}

func (g *guideRun) place(b guideBlock) string {
	return fmt.Sprintf("%s:%d", filepath.Base(g.page), b.first)
}

func (g *guideRun) must(command string) {
	g.t.Helper()
	if out, status, err := g.session.Run(command); err != nil || status != 0 {
		g.t.Fatalf("%s\nstatus %d, %v: %s", command, status, err, out)
	}
}

// from checks that a block is part of a file. Indentation is ignored.
func (g *guideRun) from(b guideBlock, body []string) {
	flat := func(lines []string) string {
		var all []string
		for _, l := range lines {
			all = append(all, strings.TrimSpace(l))
		}
		return strings.Join(all, "\n")
	}
	source := flat(readLines(g.t, filepath.Join("..", "..", filepath.FromSlash(b.value))))
	for part := range strings.SplitSeq(flat(body), "\n...\n") {
		if !strings.Contains(source, part) {
			g.t.Errorf("%s: %s does not contain:\n%s", g.place(b), b.value, part)
		}
	}
}

// validate checks a part of a configuration.
func (g *guideRun) validate(b guideBlock, body []string) {
	text := strings.Join(body, "\n") + "\n"
	if !strings.HasPrefix(text, "version:") {
		text = "version: 1\n" + text
	}
	file := filepath.Join(g.t.TempDir(), "tenon.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
	if out, status, err := g.session.Run("tenon config validate -c " + file); err != nil || status != 0 {
		g.t.Errorf("%s: not valid: %v\n%s", g.place(b), err, out)
	}
}

func (g *guideRun) background(b guideBlock, body []string) {
	command := g.real(strings.TrimPrefix(body[0], "$ "))
	want := slices.DeleteFunc(slices.Clone(body[1:]), func(l string) bool { return l == "..." })
	var got []string
	err := g.session.Background(command, func(line string) bool {
		got = append(got, g.shown(line))
		if len(want) > 0 && sameLine(want[0], g.shown(line)) {
			want = want[1:]
		}
		return len(want) == 0
	})
	if err != nil {
		g.t.Errorf("%s: %v; it printed:\n%s", g.place(b), err, strings.Join(got, "\n"))
	}
}

// console runs the commands of a console block.
func (g *guideRun) console(b guideBlock, body []string) {
	var answers []pty.Answer
	if b.marker == "types" {
		for pair := range strings.SplitSeq(b.value, "||") {
			prompt, text, _ := strings.Cut(pair, "|")
			answers = append(answers, pty.Answer{Prompt: prompt, Type: text})
		}
	}
	if len(body) == 0 || !strings.HasPrefix(body[0], "$ ") {
		g.t.Errorf("%s: the block does not begin with a command after $", g.place(b))
		return
	}
	for i := 0; i < len(body); {
		first := i
		for i < len(body)-1 && strings.HasSuffix(body[i], "\\") {
			i++
		}
		i++
		command := strings.TrimPrefix(strings.Join(body[first:i], "\n"), "$ ")
		g.out = append(g.out, body[first:i]...)
		begin := i
		for i < len(body) && !strings.HasPrefix(body[i], "$ ") {
			i++
		}
		want := body[begin:i]
		output, _, err := g.session.Run(g.real(command), answers...)
		if err != nil {
			g.t.Errorf("%s: %v\n%s", g.place(b), err, output)
			return
		}
		got := pty.Text(output)
		got = slices.DeleteFunc(got, slowOnly.MatchString)
		if filepath.Base(g.page) == "picture.md" { // empty lines have no text in the picture
			got = slices.DeleteFunc(got, func(l string) bool { return l == "" })
		}
		for i := range got {
			got[i] = g.shown(got[i])
		}
		g.compare(b, command, want, got)
	}
	g.processed = b.last
}

func (g *guideRun) compare(b guideBlock, command string, want, got []string) {
	switch {
	case matchLines(want, got):
		g.out = append(g.out, want...)
	case *update:
		g.out = append(g.out, got...)
	default:
		g.t.Errorf("%s: $ %s\n(-page +now)\n%s", g.place(b), command, cmp.Diff(want, got))
	}
}

// real replaces the fixed values of the pages by the values of this run; shown does the opposite.
func (g *guideRun) real(s string) string {
	for page, now := range g.ports {
		s = strings.ReplaceAll(s, page, now)
	}
	return s
}

func (g *guideRun) shown(s string) string {
	s = strings.ReplaceAll(s, g.home, guideHome)
	s = strings.ReplaceAll(s, g.programs, guideHome+"/go/bin")
	for page, now := range g.ports {
		s = strings.ReplaceAll(s, now, page)
	}
	return s
}

// slowOnly matches lines that are only printed on slow machines: notices about a server that starts slowly, and
// progress.
var slowOnly = regexp.MustCompile(`' is still starting \(|^[\w: ]+(: \d+%| …)$`)

// changing matches the parts of the output that differ from run to run.
var changing = []struct {
	re *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`\b(run|ses|msg|gr|prp|audit)_[0-9a-z]+`), "${1}_ID"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?Z?)?`), "TIME"},
	{regexp.MustCompile(`\b\d\d:\d\d(:\d\d(\.\d+)?)?\b`), "TIME"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d\b`), "DAY"},
	{regexp.MustCompile(`\b(now|just now|\d+ ?[a-z]+ ago)\b`), "AGO"},
	{regexp.MustCompile(`[<+]*\b\d+(\.\d+)?(ns|µs|ms|s)\b`), "DURATION"},
	{regexp.MustCompile(`"duration_ns": ?\d+`), `"duration_ns":N`},
	{regexp.MustCompile(`(sha256:)?\b[0-9a-f]{12,64}\b`), "DIGEST"},
	{regexp.MustCompile(`#token=[\w-]+`), "#token=TOKEN"},
	{regexp.MustCompile(`go1\.\d+(\.\d+)?`), "GO"},
	{regexp.MustCompile(`\bprocess[ =]\d+`), "process N"},
	{regexp.MustCompile(`\s*[█▏▎▍▌▋▊▉▐▕░][█▏▎▍▌▋▊▉▐▕░\s]*`), " BAR "},
	{regexp.MustCompile(`\s+`), " "},
}

func sameLine(want, got string) bool {
	for _, c := range changing {
		want, got = c.re.ReplaceAllString(want, c.to), c.re.ReplaceAllString(got, c.to)
	}
	return strings.TrimSpace(want) == strings.TrimSpace(got)
}

// matchLines compares lines. A line "..." in want matches any number of lines. A line that ends with "…" in want
// matches a longer line that begins with the same text.
func matchLines(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if want[0] == "..." {
		for i := range len(got) + 1 {
			if matchLines(want[1:], got[i:]) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && sameLine(want[0], got[0]) && matchLines(want[1:], got[1:])
}

func TestMatchLines(t *testing.T) {
	for name, c := range map[string]struct {
		want, got string
		same      bool
	}{
		"the same":            {"a\nb", "a\nb", true},
		"another line":        {"a\nb", "a\nc", false},
		"a line is missing":   {"a\nb", "a", false},
		"lines left out":      {"a\n...\nd", "a\nb\nc\nd", true},
		"nothing left out":    {"a\n...", "a", true},
		"left out, other end": {"a\n...\nd", "a\nb\nc", false},
		"ids and times":       {"run_0a1 took 3ms", "run_9zz took <1ms", true},
		"spaces":              {"  3ms ok", "<1ms ok", true},
		"another number":      {"3 tools", "4 tools", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := matchLines(strings.Split(c.want, "\n"), strings.Split(c.got, "\n")); got != c.same {
				t.Errorf("matchLines is %v, want %v", got, c.same)
			}
		})
	}
}

// TestGuideMarkers checks that comments before blocks are read.
func TestGuideMarkers(t *testing.T) {
	page := "<!-- file: a/b.yaml -->\n```yaml\nx: 1\n```\n\n<!-- background -->\n```console\n$ y\n```\n" +
		"<!-- types: [y/N]|y -->\n```console\n$ z\n```\n```console\n$ w\n```"
	got := guideBlocks(strings.Split(page, "\n"))
	want := []guideBlock{
		{"yaml", "file", "a/b.yaml", 2, 3}, {"console", "background", "", 7, 8},
		{"console", "types", "[y/N]|y", 11, 12}, {"console", "", "", 14, 15},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
