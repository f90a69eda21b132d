package httpapi_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

// TestDialogOverTheSocket checks that a stream contains the message chunks of a run in mode react, from the beginning
// and from any event on.
func TestDialogOverTheSocket(t *testing.T) {
	h, _, socket := serve(t)
	file := filepath.Join(t.TempDir(), "react.yaml")
	if err := os.WriteFile(file, []byte(`steps: [{text: "Thought: hm"}, {text: "Thought: I see.\nFinal Answer: It is open."}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	c := httpapi.NewClient(socket)
	defer c.Close()
	got, err := c.Start(t.Context(), httpapi.StartRequest{Question: "is the door open?", Mode: "react", Model: "script:" + file}, "")
	if err != nil {
		t.Fatal(err)
	}
	chunks := func(after uint64) (types []string, last host.Chunk, done uint64) {
		for e, err := range c.Runs().Events(t.Context(), got.Run.ID, after) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == tenon.EventDone {
				done = e.Seq
			}
			if e.Kind != host.LiveChunk {
				continue
			}
			last = host.Chunk{}
			if err := json.Unmarshal(e.Data, &last); err != nil {
				t.Fatal(err)
			}
			if len(types) == 0 || last.EndOfMessage || types[len(types)-1] != last.Type {
				types = append(types, last.Type)
			}
		}
		return slices.Compact(types), last, done
	}
	types, last, done := chunks(0)
	if want := []string{host.ChunkThought, host.ChunkObservation, host.ChunkThought, host.ChunkAnswer}; !slices.Equal(types, want) || !last.EndOfDialog || !last.EndOfMessage {
		t.Errorf("the chunks are %q and end with %+v", types, last)
	}
	if types, last, _ = chunks(done - 1); !slices.Equal(types, []string{host.ChunkAnswer}) || !last.EndOfDialog {
		t.Errorf("before the last event the chunks are %q and end with %+v", types, last)
	}
	if _, err := host.NewDialog(t.Context(), h.Runs().Open(got.Run.ID), done); err != nil {
		t.Error(err)
	}
	if _, err := c.Start(t.Context(), httpapi.StartRequest{Question: "x", Mode: "chatty"}, ""); tenon.ErrorCode(err) != tenon.CodeInvalid {
		t.Errorf("a mode that does not exist: %v", err)
	}
}
