package model_test

import (
	"encoding/json"
	"fmt"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
)

// blockOf returns the index of the block, item or call to which an event of a recorded stream belongs, and false if the
// event must keep its place.
func blockOf(wire, event string) (int, bool) {
	var e struct {
		Type        string
		Index       *int
		OutputIndex *int `json:"output_index"`
		Choices     []struct {
			FinishReason string `json:"finish_reason"`
			Delta        map[string]json.RawMessage
		}
	}
	if json.Unmarshal([]byte(event), &e) != nil {
		return 0, false
	}
	switch {
	case wire == "anthropic" && e.Index != nil:
		return *e.Index, true
	case wire == "responses" && e.OutputIndex != nil:
		return *e.OutputIndex, true
	case wire == "chat" && len(e.Choices) == 1 && e.Choices[0].FinishReason == "":
		var calls []struct{ Index *int }
		if json.Unmarshal(e.Choices[0].Delta["tool_calls"], &calls) == nil && len(calls) == 1 && calls[0].Index != nil {
			return *calls[0].Index, true
		}
	}
	return 0, false
}

// interleaved returns the events with the pieces of different blocks in turns. The pieces of each block keep their
// order.
func interleaved(wire string, events []string) (out []string, blocks int) {
	for i := 0; i < len(events); {
		if _, ok := blockOf(wire, events[i]); !ok {
			out = append(out, events[i])
			i++
			continue
		}
		queues, order := map[int][]string{}, []int(nil)
		for ; i < len(events); i++ {
			n, ok := blockOf(wire, events[i])
			if !ok {
				break
			}
			if queues[n] == nil {
				order = append(order, n)
			}
			queues[n] = append(queues[n], events[i])
		}
		blocks = max(blocks, len(order))
		for left := true; left; {
			left = false
			for _, n := range order {
				if q := queues[n]; len(q) > 0 {
					out, queues[n], left = append(out, q[0]), q[1:], true
				}
			}
		}
	}
	return out, blocks
}

// TestInterleavedStreams sends the pieces of the blocks, items and calls of recorded streams in turns. The formats number
// them, so the answer must be the same.
func TestInterleavedStreams(t *testing.T) {
	parse := func(r recorded, events []string) (*tenon.Response, error) {
		i := 0
		return wires[r.wire](func() ([]byte, error) {
			if i == len(events) {
				return nil, io.EOF
			}
			i++
			return []byte(events[i-1]), nil
		}, func(tenon.Delta) bool { return true })
	}
	count := map[string]int{}
	for _, r := range recordings(t) {
		events, blocks := interleaved(r.wire, r.events)
		if blocks < 2 || failing[r.name] != "" || r.handMade {
			continue
		}
		count[r.wire]++
		t.Run("MD-1_"+r.name, func(t *testing.T) {
			want, err := parse(r, r.events)
			if err != nil {
				t.Fatal(err)
			}
			got, err := parse(r, events)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range []*tenon.Response{want, got} { // made by the adapter if the provider gives none
				for i, c := range m.Message.Calls() {
					if c.ID == "" {
						c.ID = fmt.Sprint(i)
					}
				}
			}
			if d := cmp.Diff(shown(t, want), shown(t, got)); d != "" {
				t.Errorf("-in order +in turns:\n%s", d)
			}
		})
	}
	t.Log(count)
	if count["anthropic"] < 10 || count["responses"] < 10 || count["chat"] < 3 {
		t.Error("too few streams have several blocks", count)
	}
}

// shown returns an answer as JSON.
func shown(t *testing.T, r *tenon.Response) string {
	t.Helper()
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
