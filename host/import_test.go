package host_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/transcript"
	"github.com/tenonhq/tenon/view"
)

// exportText returns the export of a session without its creation time.
func exportText(t testing.TB, h *host.Host, session string) string {
	t.Helper()
	var b bytes.Buffer
	if err := h.Sessions().Transcripts().Export(t.Context(), &b, session, host.FormatJSON); err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`"exported":"[^"]*"`).ReplaceAllString(b.String(), `"exported":""`)
}

func imported(t *testing.T, h *host.Host, im transcript.Import, text string) transcript.ImportReport {
	t.Helper()
	im.From = strings.NewReader(text)
	r, err := h.Sessions().Transcripts().Import(t.Context(), im)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const talkSteps = `
conversations:
  - match: buy
    steps: [{calls: [{name: sell, arguments: {thing: tea}}]}, {text: bought}]
  - match: tea cost
    steps: [{thinking: "which shop?", calls: [{name: price, arguments: {thing: tea}}, {name: price, arguments: {thing: milk}}]}, {text: "three <euros>\n# and a half"}]
  - steps: [{text: "later"}]
`

// TestImport copies a session with a fork, a waiting run and the results of a called tool from one store to another. An
// export from the second store equals the imported file.
func TestImport(t *testing.T) {
	from := open(t, t.TempDir(), talkSteps, &shop{})
	first, _ := ask(t, from, host.Question{Text: "What does tea cost?"})
	fork, _, err := from.Sessions().Fork(t.Context(), host.Fork{Session: first.Session, Title: "The other way"})
	if err != nil {
		t.Fatal(err)
	}
	ask(t, from, host.Question{Text: "hello", Session: fork.ID})
	waits, _ := ask(t, from, host.Question{Text: "buy tea", Session: fork.ID})
	if waits.State != tenon.RunInputRequired {
		t.Fatalf("the run does not wait: %+v", waits)
	}
	text := exportText(t, from, fork.ID)

	s := &shop{}
	to := open(t, t.TempDir(), talkSteps, s)
	r := imported(t, to, transcript.Import{}, text)
	want := transcript.ImportReport{Session: r.Session, Sessions: 2, Runs: 3, Unended: 1}
	if diff := cmp.Diff(want, r); diff != "" || r.Session.ID != fork.ID || r.Session.Imported.IsZero() || r.Session.Runs != 2 {
		t.Errorf("report %s, session %+v", diff, r.Session)
	}
	if diff := cmp.Diff(text, exportText(t, to, fork.ID)); diff != "" {
		t.Errorf("the second export (-first +second):\n%s", diff)
	}
	if found, err := to.Sessions().Transcripts().Search(t.Context(), transcript.Query{Words: "euros"}); err != nil || len(found) != 1 {
		t.Errorf("search: %+v, %v", found, err)
	}

	// Nothing can continue the imported run.
	row, err := to.Runs().Get(t.Context(), waits.Run)
	if err != nil || row.State != tenon.RunCancelled || row.Stop != tenon.StopImported || row.Imported == nil || len(row.Waiting) > 0 {
		t.Errorf("the run that waited: %+v, %v", row, err)
	}
	if list, err := to.Approvals().List(t.Context(), ""); err != nil || len(list) > 0 {
		t.Errorf("approvals: %+v, %v", list, err)
	}
	if _, _, err := to.Approvals().Decide(t.Context(), waits.Run, "1.0", agent.Ruling{Verdict: tenon.Allow, By: "me"}); tenon.ErrorCode(err) != tenon.CodeConflict {
		t.Errorf("a decision: %v", err)
	}
	if err := to.Runs().Resume(t.Context(), waits.Run); err != nil {
		t.Errorf("resume: %v", err)
	}
	if open, err := to.Runs().List(t.Context(), engine.Filter{Resumable: true}); err != nil || len(open) > 0 {
		t.Errorf("resumable: %+v, %v", open, err)
	}
	if stats, err := to.Stats(t.Context(), host.StatsQuery{By: host.StatsTools}); err != nil || len(stats) > 0 {
		t.Errorf("calls that were made elsewhere are counted: %+v, %v", stats, err)
	}

	// The session itself can continue, in new runs.
	next, _ := ask(t, to, host.Question{Text: "and now?", Session: fork.ID})
	if next.State != tenon.RunCompleted || next.Answer != "later" || s.sold.Load() != 0 {
		t.Errorf("the next question: %+v, %d bought", next, s.sold.Load())
	}
	if again := exportText(t, to, fork.ID); !strings.Contains(again, next.Run) || strings.Contains(again, "imported") {
		t.Errorf("an export after that: %s", again)
	}
	if _, err := to.Sessions().Transcripts().Import(t.Context(), transcript.Import{From: strings.NewReader(text)}); tenon.ErrorCode(err) != tenon.CodeConflict || !strings.Contains(err.Error(), "--copy") {
		t.Errorf("the same once more: %v", err)
	}
}

// TestImportCopy imports a file into the store that it was exported from.
func TestImportCopy(t *testing.T) {
	h := open(t, t.TempDir(), talkSteps, &shop{})
	first, _ := ask(t, h, host.Question{Text: "What does tea cost?"})
	ask(t, h, host.Question{Text: "hello", Session: first.Session})
	text := exportText(t, h, first.Session)
	r := imported(t, h, transcript.Import{Copy: true, Title: "  a\ncopy "}, text)
	if r.Session.ID == first.Session || r.Runs != 2 || r.Session.Title != "a copy" {
		t.Fatalf("%+v", r)
	}
	copied := exportText(t, h, r.Session.ID)
	ids := regexp.MustCompile(`(run|ses)_[0-9a-z]{20}`)
	seen := map[string]bool{}
	for _, id := range ids.FindAllString(text, -1) {
		seen[id] = true
	}
	for _, id := range ids.FindAllString(copied, -1) {
		if seen[id] {
			t.Errorf("the copy names %s", id)
		}
	}
	plain := func(s string) string {
		return regexp.MustCompile(`"title":"[^"]*"`).ReplaceAllString(ids.ReplaceAllString(s, "$1"), "")
	}
	if diff := cmp.Diff(plain(text), plain(copied)); diff != "" {
		t.Errorf("beside its ids the copy is another:\n%s", diff)
	}
	if s, err := h.Sessions().Transcripts().Messages(t.Context(), first.Session); err != nil || len(s) != 6 {
		t.Errorf("the original has %d messages, %v", len(s), err)
	}
}

// TestImportGrants checks that grants of an imported session are not valid: the next call of the session needs an
// approval again.
func TestImportGrants(t *testing.T) {
	from := open(t, t.TempDir(), talkSteps, &shop{})
	first, _ := ask(t, from, host.Question{Text: "buy tea"})
	if _, _, err := from.Approvals().Decide(t.Context(), first.Run, "1.0", agent.Ruling{Verdict: tenon.Allow, By: "me", Remember: agent.RememberSession}); err != nil {
		t.Fatal(err)
	}
	if err := from.Runs().Resume(t.Context(), first.Run); err != nil {
		t.Fatal(err)
	}
	follow(t, from, first.Run)
	if again, _ := ask(t, from, host.Question{Text: "buy tea again", Session: first.Session}); again.State != tenon.RunCompleted {
		t.Fatalf("the grant does not hold at home: %+v", again)
	}
	to := open(t, t.TempDir(), talkSteps, &shop{})
	imported(t, to, transcript.Import{}, exportText(t, from, first.Session))
	for _, q := range []string{"hello", "buy tea"} {
		r, _ := ask(t, to, host.Question{Text: q, Session: first.Session})
		if want := map[bool]tenon.RunState{true: tenon.RunInputRequired, false: tenon.RunCompleted}[q != "hello"]; r.State != want {
			t.Errorf("%s: %s, want %s", q, r.State, want)
		}
	}
}

// TestImportMarkdown imports an exported Markdown page. The messages are imported, and nothing else.
func TestImportMarkdown(t *testing.T) {
	steps := strings.ReplaceAll(talkSteps, "- steps: [{text", "- match: fail\n    steps: [{calls: [{name: fail}]}, {text: \"```sh\\n## User\\n```\\n![x](y) a & b\\n---\"}]\n  - steps: [{text")
	from := open(t, t.TempDir(), steps, &shop{})
	first, _ := ask(t, from, host.Question{Text: "# What *does* tea\n    cost <now>?"})
	ask(t, from, host.Question{Text: "let it fail", Session: first.Session})
	page := func(h *host.Host, session string) string {
		var b strings.Builder
		if err := h.Sessions().Transcripts().Export(t.Context(), &b, session, host.FormatMarkdown); err != nil {
			t.Fatal(err)
		}
		return regexp.MustCompile("(?m)^Session .*$").ReplaceAllString(b.String(), "Session")
	}
	text := page(from, first.Session)
	to := open(t, t.TempDir(), steps, &shop{})
	r := imported(t, to, transcript.Import{}, text)
	if !r.SaidOnly || r.Runs != 1 || r.Session.Title != "# What *does* tea cost <now>?" {
		t.Errorf("%+v", r)
	}
	if diff := cmp.Diff(text, page(to, r.Session.ID)); diff != "" {
		t.Errorf("the page came back as another:\n%s", diff)
	}
	want, err := from.Sessions().Transcripts().Messages(t.Context(), first.Session)
	if err != nil {
		t.Fatal(err)
	}
	got, err := to.Sessions().Transcripts().Messages(t.Context(), r.Session.ID)
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d messages, want %d, %v", len(got), len(want), err)
	}
	for i := range want {
		if got[i].Role != want[i].Role || strings.TrimSpace(got[i].Text()) != strings.TrimSpace(want[i].Text()) || len(got[i].Calls()) != len(want[i].Calls()) {
			t.Errorf("message %d: %+v, want %+v", i+1, got[i].Message, want[i].Message)
		}
	}
	if again := imported(t, to, transcript.Import{}, text); again.Session.ID == r.Session.ID {
		t.Error("a second import of a page is the same session")
	}
	if replayed, err := to.Runs().Open(got[0].Run).Replay(t.Context()); err != nil || !replayed.Same {
		t.Errorf("replay: %+v, %v", replayed, err)
	}
	if next, _ := ask(t, to, host.Question{Text: "and now?", Session: r.Session.ID}); next.Answer != "later" {
		t.Errorf("%+v", next)
	}
	// The export of this session says that it was imported.
	third := open(t, t.TempDir(), steps, &shop{})
	if x := imported(t, third, transcript.Import{}, exportText(t, to, r.Session.ID)); x.Runs != 2 {
		t.Errorf("%+v", x)
	}
}

func TestImportMessages(t *testing.T) {
	h := open(t, t.TempDir(), talkSteps, &shop{})
	r := imported(t, h, transcript.Import{}, `[{"role":"user","content":"q"},{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"1"},{"role":"assistant","content":"one"}]`)
	said, err := h.Sessions().Transcripts().Messages(t.Context(), r.Session.ID)
	if err != nil || len(said) != 4 || r.Session.Title != "q" || said[3].Text() != "one" {
		t.Errorf("%+v, %+v, %v", r, said, err)
	}
	if report, err := h.Runs().Open(r.Session.Head).Report(t.Context()); err != nil || report.State != tenon.RunCompleted {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestImportMasked checks that a large value that was masked in the export gets a new digest, and that the imported
// session contains the masked text.
func TestImportMasked(t *testing.T) {
	from := open(t, t.TempDir(), talkSteps, &shop{})
	first, _ := ask(t, from, host.Question{Text: "What does tea cost?"})
	text := exportText(t, from, first.Session)
	text = strings.Replace(text, `"blobs":[`+"\n"+`{"digest":"`, `"blobs":[`+"\n"+`{"masked":true,"digest":"`, 1)
	text = strings.Replace(text, "what a thing costs", "what a •••• costs", 1)
	to := open(t, t.TempDir(), talkSteps, &shop{})
	if r := imported(t, to, transcript.Import{}, text); r.Masked != 1 {
		t.Errorf("%+v", r)
	}
	again := exportText(t, to, first.Session)
	if strings.Contains(again, `"masked"`) || !strings.Contains(again, "what a •••• costs") {
		t.Errorf("the second export: %s", again)
	}
}

// change applies a hostile change to an export.
func change(t *testing.T, text string, f func(d map[string]any)) string {
	t.Helper()
	d := map[string]any{}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	var raw struct{ Blobs []map[string]json.RawMessage }
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		t.Fatal(err)
	}
	for i, b := range raw.Blobs {
		object(d, "blobs", i)["data"] = b["data"] // byte for byte
	}
	f(d)
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// at returns the value at a path of a document, such as runs, 0, run.
func at(v any, path ...any) any {
	for _, p := range path {
		switch k := p.(type) {
		case string:
			v = v.(map[string]any)[k]
		case int:
			v = v.([]any)[k]
		}
	}
	return v
}

func object(v any, path ...any) map[string]any { return at(v, path...).(map[string]any) }

type brokenExport struct {
	change func(d map[string]any)
	want   string
}

// brokenExports returns changes that make the export of a session invalid. Its second run continues the first.
func brokenExports(first, second view.Report, other string, spec func(d map[string]any, run int) map[string]any) map[string]brokenExport {
	return map[string]brokenExport{
		"version":        {func(d map[string]any) { d["tenon_export"] = 2 }, "version 2"},
		"no_session":     {func(d map[string]any) { d["session"] = "ses_x" }, "does not contain"},
		"session_id":     {func(d map[string]any) { object(d, "sessions", 0)["id"] = "../x" }, "the invalid id"},
		"session_twice":  {func(d map[string]any) { d["sessions"] = append(d["sessions"].([]any), at(d, "sessions", 0)) }, "twice"},
		"forked_itself":  {func(d map[string]any) { object(d, "sessions", 0)["parent"] = first.Session }, "forked from itself"},
		"head":           {func(d map[string]any) { object(d, "sessions", 0)["head"] = other }, "not a question in the file"},
		"head_seq":       {func(d map[string]any) { object(d, "sessions", 0)["head_seq"] = 99 }, "which has"},
		"year":           {func(d map[string]any) { object(d, "sessions", 0)["updated"] = "9999-01-01T00:00:00Z" }, "has the time"},
		"title":          {func(d map[string]any) { object(d, "sessions", 0)["title"] = strings.Repeat("x", 9999) }, "title"},
		"agent":          {func(d map[string]any) { object(d, "runs", 0, "run")["agent"] = strings.Repeat("x", 9999) }, "a name of"},
		"run_id":         {func(d map[string]any) { object(d, "runs", 0, "run")["id"] = "run_\x1b[2J" }, "the invalid id"},
		"run_twice":      {func(d map[string]any) { d["runs"] = append(d["runs"].([]any), at(d, "runs", 0)) }, "twice"},
		"state":          {func(d map[string]any) { object(d, "runs", 0, "run")["state"] = "dancing" }, "unknown state"},
		"ended_waits":    {func(d map[string]any) { object(d, "runs", 0, "run")["waiting"] = []any{map[string]any{"step": "1.0"}} }, "has ended, but waits"},
		"not_ended_stop": {func(d map[string]any) { object(d, "runs", 0, "run")["state"] = "working" }, "has a stop reason"},
		"no_events":      {func(d map[string]any) { object(d, "runs", 0)["events"] = []any{} }, "does not begin"},
		"count":          {func(d map[string]any) { object(d, "runs", 0, "run")["seq"] = 3 }, "row says 3"},
		"gap":            {func(d map[string]any) { object(d, "runs", 0, "events", 2)["seq"] = 9 }, "says that it is event 9"},
		"another_run":    {func(d map[string]any) { object(d, "runs", 0, "events", 2)["run"] = other }, "of run"},
		"two_beginnings": {func(d map[string]any) { object(d, "runs", 0, "events", 1)["kind"] = "run" }, "begins the run again"},
		"unknown_kind":   {func(d map[string]any) { object(d, "runs", 0, "events", 1)["kind"] = "magic" }, "unknown kind"},
		"out_of_place":   {func(d map[string]any) { object(d, "runs", 0, "events", 2)["step"] = "7" }, "does not follow"},
		"spec_session":   {func(d map[string]any) { spec(d, 0)["session"] = "ses_x" }, "contradicts"},
		"spec":           {func(d map[string]any) { object(d, "runs", 0, "events", 0)["data"] = 7 }, "cannot be read"},
		"core": {func(d map[string]any) {
			object(d, "runs", 0, "run")["core"], spec(d, 0)["core"] = "agent@9", "agent@9"
			object(d, "runs", 1, "run")["parent"], spec(d, 1)["parent"] = "", ""
			object(d, "runs", 1, "run")["parent_seq"], spec(d, 1)["parent_seq"] = 0, 0
		}, "does not know"},
		"run_session": {func(d map[string]any) {
			id := "ses_" + strings.Repeat("0", 20)
			object(d, "runs", 0, "run")["session"], spec(d, 0)["session"] = id, id
		}, "belongs to session"},
		"caller": {func(d map[string]any) { object(d, "runs", 0, "run")["caller"], spec(d, 0)["caller"] = other, other }, "cannot be called by"},
		"parent_gone": {func(d map[string]any) {
			object(d, "runs", 1, "run")["parent"], spec(d, 1)["parent"] = other, other
		}, "not a question in the file"},
		"parent_seq": {func(d map[string]any) {
			object(d, "runs", 1, "run")["parent_seq"], spec(d, 1)["parent_seq"] = 99, 99
		}, "continues event 99"},
		"circle": {func(d map[string]any) {
			object(d, "runs", 0, "run")["parent"], spec(d, 0)["parent"] = second.Run, second.Run
			object(d, "runs", 0, "run")["parent_seq"], spec(d, 0)["parent_seq"] = 1, 1
		}, "continues itself"},
		"no_blob":      {func(d map[string]any) { d["blobs"] = []any{} }, "needs the blob"},
		"changed_blob": {func(d map[string]any) { object(d, "blobs", 0)["data"] = "x" }, "has been changed"},
		"blob_twice":   {func(d map[string]any) { d["blobs"] = append(d["blobs"].([]any), at(d, "blobs", 0)) }, "twice"},
		"blob_name":    {func(d map[string]any) { object(d, "blobs", 0)["digest"] = "x" }, "has no digest"},
		"blob_of_no_one": {func(d map[string]any) {
			d["blobs"] = append(d["blobs"].([]any), map[string]any{"masked": true, "digest": "sha256:" + strings.Repeat("0", 64), "data": 1})
		}, "no run uses blob"},
		"empty_question": {func(d map[string]any) { object(d, "runs", 0, "events", 0, "data", "data")["question"] = " " }, "is empty"},
		"model_as_user": {func(d map[string]any) {
			object(d, "runs", 1, "events", 2, "data", "message")["role"] = "user"
			object(d, "runs", 1, "events", 2, "data", "message")["parts"] = []any{map[string]any{"type": "tool_call", "call": map[string]any{"name": "x"}}}
		}, "cannot have a part"},
		"null_history": {func(d map[string]any) { object(d, "runs", 0, "events", 0, "data", "data")["history"] = []any{nil} }, "null"},
		"broken_image": {func(d map[string]any) {
			object(d, "runs", 0, "events", 0, "data", "data")["history"] = []any{map[string]any{"role": "user", "parts": []any{map[string]any{"type": "image", "mime_type": "image/png", "data": "?"}}}}
		}, "base64"},
	}
}

// TestImportRefuses checks that invalid changes to a file are refused with the right reason, and that nothing of the
// file is in the store afterwards.
func TestImportRefuses(t *testing.T) {
	from := open(t, t.TempDir(), talkSteps, &shop{})
	first, _ := ask(t, from, host.Question{Text: "What does tea cost?"})
	second, _ := ask(t, from, host.Question{Text: "hello", Session: first.Session})
	text := exportText(t, from, first.Session)
	other := "run_" + strings.Repeat("0", 20)
	spec := func(d map[string]any, run int) map[string]any {
		return object(d, "runs", run, "events", 0, "data", "run")
	}
	tests := brokenExports(first, second, other, spec)
	files := map[string]struct{ text, want string }{
		"empty":                {" \n", "empty"},
		"cut":                  {text[:len(text)/2], "not JSON: byte"},
		"behind":               {text + "{}", "not JSON: byte"},
		"type":                 {`{"tenon_export":1,"sessions":7}`, "'sessions' is a number"},
		"binary":               {"\x00\xff\xfe", "neither JSON nor text"},
		"nothing":              {`[]`, "no conversation"},
		"page":                 {"# hello\n\nworld\n", "## User"},
		"open_call":            {"## User\n\nx\n\n## Assistant\n\n<details><summary>calls <code>f</code></summary>\n\n```json\n{}\n```\n</details>\n", "each call needs one"},
		"no_end":               {"## User\n\nx\n\n## Assistant\n\n<details><summary>calls <code>f</code></summary>\n", "</details>"},
		"SEC-F11_two_sessions": {strings.Replace(text, `"session":`, `"Session":"ses_00000000000000000000","session":`, 1), "has to be written \"session\""},
		"SEC-F11_two_states":   {strings.Replace(text, `"state":"completed"`, `"state":"completed","STATE":"working"`, 1), "has to be written \"state\""},
		"SEC-F11_twice":        {strings.Replace(text, `"state":"completed"`, `"state":"working","state":"completed"`, 1), "there twice"},
		"SEC-F11_version":      {strings.Replace(text, `"tenon_export"`, `"Tenon_export"`, 1), "has to be written"},
		"result":               {"## User\n\nx\n\n## Assistant\n\n<details><summary>result of <code>f</code></summary>\n</details>\n", "was not called before"},
		"assistant":            {"## Assistant\n\nx\n", "begins with the user"},
	}
	for name, c := range tests {
		files[name] = struct{ text, want string }{change(t, text, c.change), c.want}
	}
	to := open(t, t.TempDir(), talkSteps, &shop{})
	for name, f := range files {
		t.Run(name, func(t *testing.T) {
			for _, cp := range []bool{false, true} {
				_, err := to.Sessions().Transcripts().Import(t.Context(), transcript.Import{From: strings.NewReader(f.text), Copy: cp})
				if code := tenon.ErrorCode(err); code != tenon.CodeInvalid || !strings.Contains(err.Error(), f.want) {
					t.Errorf("copy %t: %v (%s), want %q", cp, err, code, f.want)
				}
			}
		})
	}
	if list, err := to.Sessions().List(t.Context(), host.SessionFilter{Limit: 0}); err != nil || len(list) > 0 {
		t.Errorf("something is left: %+v, %v", list, err)
	}
	imported(t, to, transcript.Import{}, change(t, text, func(map[string]any) {}))
}

// TestImportLong imports a conversation of many runs whose order in the file is random.
func TestImportLong(t *testing.T) {
	longtest.Skip(t)
	home := t.TempDir()
	h := open(t, home, talkSteps, &shop{})
	first, _ := ask(t, h, host.Question{Text: "hello"})
	text := exportText(t, h, first.Session)
	long := change(t, text, func(d map[string]any) {
		const n = 2_000
		b, err := json.Marshal(at(d, "runs", 0))
		if err != nil {
			t.Fatal(err)
		}
		var runs []any
		id := func(i int) string { return fmt.Sprintf("run_%020d", i) }
		for i := n; i > 0; i-- {
			var r map[string]any
			if err := json.Unmarshal(bytes.ReplaceAll(b, []byte(first.Run), []byte(id(i))), &r); err != nil {
				t.Fatal(err)
			}
			if i > 1 {
				row, spec := object(r, "run"), object(r, "events", 0, "data", "run")
				row["parent"], spec["parent"] = id(i-1), id(i-1)
				row["parent_seq"], spec["parent_seq"] = row["seq"], row["seq"]
			}
			runs = append(runs, r)
		}
		d["runs"], object(d, "sessions", 0)["head"] = runs, id(n)
	})
	r := imported(t, h, transcript.Import{Copy: true}, long)
	if said, err := h.Sessions().Transcripts().Messages(t.Context(), r.Session.ID); err != nil || len(said) != 4_000 || r.Runs != 2_000 {
		t.Errorf("%d messages, %v, %+v", len(said), err, r)
	}
	if info, err := os.Stat(filepath.Join(home, "tenon.db")); err == nil {
		t.Logf("%d bytes in the file, %d in the store", len(long), info.Size())
	}
}

// FuzzImport imports arbitrary files, with their own ids and with new ones. A file is either imported or refused with a
// reason.
func FuzzImport(f *testing.F) {
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "steps.yaml"), []byte(talkSteps), 0o600); err != nil {
		f.Fatal(err)
	}
	h, err := host.Open(f.Context(), host.Config{Home: dir, Model: "script:" + filepath.Join(dir, "steps.yaml"), Toolsets: map[string]tenon.Toolset{"shop": &shop{}},
		LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = h.Close() })
	session := ""
	for _, q := range []string{"What does tea cost?", "buy tea", "hello"} {
		run, err := h.Start(f.Context(), host.Question{Text: q, Session: session})
		if err != nil {
			f.Fatal(err)
		}
		for _, err := range h.Runs().Events(f.Context(), run.ID, 0) {
			if err != nil {
				f.Fatal(err)
			}
		}
		if row, err := h.Runs().Get(f.Context(), run.ID); err != nil || !row.State.Ended() {
			break
		}
		session = run.Session
	}
	f.Add([]byte(exportText(f, h, "-1")))
	var page bytes.Buffer
	if err := h.Sessions().Transcripts().Export(f.Context(), &page, "-1", host.FormatMarkdown); err != nil {
		f.Fatal(err)
	}
	f.Add(page.Bytes())
	f.Add([]byte("## User\nx\n## Assistant\n<details><summary>calls <code>f</code></summary>\n```json\n{}\n```\n</details>\n<details><summary>error of <code>f</code></summary>\n```\nx\n```\n</details>\ny"))
	f.Add([]byte(`[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		err := host.CheckImport(t.Context(), h, data, transcript.Import{})
		if cerr := host.CheckImport(t.Context(), h, data, transcript.Import{Copy: true}); (err == nil) != (cerr == nil) {
			t.Fatalf("as it is: %v, as a copy: %v", err, cerr)
		}
		if code := tenon.ErrorCode(err); err != nil && code != tenon.CodeInvalid && code != tenon.CodeTooLarge && code != tenon.CodeStore {
			t.Fatal(err)
		}
	})
}
