package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/policy"
)

// library is a toolset whose only tool returns a long text and a picture.
type library struct{ text string }

func (l library) Tools(context.Context) ([]tenon.Tool, error) {
	yes := true
	return []tenon.Tool{{Remote: "book", Input: json.RawMessage(`{"type":"object"}`), Annotations: tenon.Annotations{ReadOnly: &yes}}}, nil
}

func (l library) Call(context.Context, tenon.Call) (*tenon.Result, error) {
	return &tenon.Result{Content: []tenon.Content{tenon.Text(l.text), {Type: tenon.ContentImage, MimeType: "image/png", Data: "aGVsbG8="}}}, nil
}

// TestLargeResult checks each way of limiting the part of a result that the model gets, and that the model can read the
// rest.
func TestLargeResult(t *testing.T) {
	var b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&b, "line %d ä\n", i)
	}
	text := b.String()
	for _, tt := range []struct{ mode, has string }{
		{policy.LargeTruncate, "[truncated, full result: artifact "},
		{policy.LargeArtifact, "these are the first 1024 of"},
		{policy.LargeError, "Error: the result is too large"},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			var got, read, found string
			var offered [][]string
			steps := 0
			h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Model: "m", Toolsets: map[string]tenon.Toolset{"library": library{text}},
				Config:    &config.Config{Policy: policy.Config{Defaults: policy.Block{ResultBytes: 4000, OnLargeResult: tt.mode}}},
				LookupEnv: func(string) (string, bool) { return "", false },
				Models: map[string]tenon.Model{"m": answering(func(req *tenon.Request) (*tenon.Response, error) {
					offered = append(offered, names(req))
					steps++
					last := lastText(req)
					switch steps {
					case 1:
						return calls(`book {}`), nil
					case 2:
						r := tenon.Result{Content: req.Messages[len(req.Messages)-1].Parts[0].Result.Content}
						got = r.Text()
						_, id, _ := strings.Cut(got, "artifact ")
						id = id[:strings.IndexAny(id, "];:")]
						return calls(fmt.Sprintf(`read_artifact {"artifact":%q,"offset":100000,"length":50}`, id), fmt.Sprintf(`read_artifact {"artifact":%q,"search":"LINE 12345 "}`, id)), nil
					case 3:
						read = req.Messages[len(req.Messages)-1].Parts[0].Result.Content[0].Text
						found = last
					}
					return says("done"), nil
				})}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = h.Close() })
			r, _ := ask(t, h, host.Question{Text: "q"})
			if r.Answer != "done" {
				t.Fatalf("%+v", r.Error)
			}
			if !strings.Contains(got, tt.has) || len(got) > 4000 {
				t.Errorf("the model got %d bytes: %.200s", len(got), got)
			}
			if tt.mode == policy.LargeTruncate && (!strings.HasPrefix(got, "line 0 ä\n") || !strings.HasSuffix(got, "line 19999 ä\n") || len(got) < 3900) {
				t.Errorf("head and tail are not there, or too short: %d bytes", len(got))
			}
			if want := strings.ToValidUTF8(text[100000:100048], ""); !strings.HasPrefix(read, want) || !strings.Contains(read, "go on with offset 1000") {
				t.Errorf("read %q, want %q", read, want)
			}
			if at := strings.Index(text, "line 12345 "); !strings.Contains(found, fmt.Sprintf("[byte %d]", at)) {
				t.Errorf("found %q, want byte %d", found, at)
			}
			if len(offered[0]) != 1 || len(offered[1]) != 2 {
				t.Errorf("tools on offer: %v", offered)
			}
			id := got[strings.Index(got, "artifact ")+len("artifact "):]
			id = id[:strings.IndexAny(id, "];:")]
			if data, _, err := h.Runs().Open(r.Run).Artifact(t.Context(), id); err != nil || string(data) != text {
				t.Errorf("the whole: %d bytes, %v", len(data), err)
			}
			if tt.mode != policy.LargeError {
				if data, mime, err := h.Runs().Open(r.Run).Artifact(t.Context(), "1.0-1"); err != nil || string(data) != "hello" || mime != "image/png" {
					t.Errorf("the picture: %q %s %v", data, mime, err)
				}
			}
			if _, _, err := h.Runs().Open(r.Run).Artifact(t.Context(), "nope"); tenon.ErrorCode(err) != tenon.CodeNotFound {
				t.Errorf("an unknown one: %v", err)
			}
			replay(t, h, r.Session)
		})
	}
}

// TestReadsGoOn checks that a model that reads a large result in pieces smaller than a character gets all of it.
func TestReadsGoOn(t *testing.T) {
	text := strings.Repeat("😀", 27)
	var id, got string
	offset, steps := 0, 0
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Model: "m", Toolsets: map[string]tenon.Toolset{"library": library{text}},
		Config:    &config.Config{Policy: policy.Config{Defaults: policy.Block{ResultBytes: 90, OnLargeResult: policy.LargeArtifact}}},
		LookupEnv: func(string) (string, bool) { return "", false },
		Models: map[string]tenon.Model{"m": answering(func(req *tenon.Request) (*tenon.Response, error) {
			switch steps++; steps {
			case 1:
				return calls(`book {}`), nil
			case 2:
				_, id, _ = strings.Cut(lastText(req), "artifact ")
				id, _, _ = strings.Cut(id, ";")
			default:
				piece, note, _ := strings.Cut(lastText(req), "\n[")
				got += piece
				_, next, more := strings.Cut(note, "go on with offset ")
				if !more || steps > 50 {
					return says("read"), nil
				}
				if _, err := fmt.Sscanf(next, "%d", &offset); err != nil {
					return nil, err
				}
			}
			return calls(fmt.Sprintf(`read_artifact {"artifact":%q,"offset":%d,"length":1}`, id, offset)), nil
		})}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	if r, _ := ask(t, h, host.Question{Text: "read it", MaxTurns: 60}); r.Answer != "read" || got != text {
		t.Errorf("read %q of %q in %d turns: %+v", got, text, steps, r)
	}
}
