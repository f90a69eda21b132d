package model_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

// TestConversationsThatFork checks that conversations that share a beginning, grow, shrink and fork are encoded
// correctly, also concurrently.
func TestConversationsThatFork(t *testing.T) {
	msgs := make([]*tenon.Message, 12)
	for i := range msgs {
		msgs[i] = tenon.UserMessage(fmt.Sprint(i))
	}
	silent := &tenon.Message{Role: tenon.RoleUser} // has no wire form
	pick := func(ns ...int) []*tenon.Message {
		var out []*tenon.Message
		for _, n := range ns {
			if n < 0 {
				out = append(out, silent)
				continue
			}
			out = append(out, msgs[n])
		}
		return out
	}
	encode := func(m *tenon.Message) ([]byte, error) {
		if len(m.Parts) == 0 {
			return nil, nil
		}
		return []byte("," + m.Text()), nil
	}
	cases := []struct {
		msgs  []*tenon.Message
		first bool
		want  string
	}{
		{pick(0, 1), true, "0,1"}, {pick(0, 1, 2), true, "0,1,2"}, {pick(0, 1, 3), true, "0,1,3"}, {pick(0, 1, 3), false, ",0,1,3"},
		{pick(0), true, "0"}, {pick(0, 1, 2, 4, 5), true, "0,1,2,4,5"}, {pick(0, 1, 2, 4, 6), true, "0,1,2,4,6"}, {pick(), true, ""},
		{pick(-1, 7), true, "7"}, {pick(-1, 7, 8), true, "7,8"}, {pick(-1), true, ""}, {pick(9), true, "9"}, {pick(10), true, "10"}, {pick(11), true, "11"},
	}
	var c model.Conversations
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				for _, x := range cases {
					var b model.Body
					b.Add([]byte("<"))
					if err := c.Add(&b, &model.Form{Key: "k", Encode: encode}, x.msgs, x.first); err != nil {
						t.Error(err)
					}
					b.Add([]byte(">"))
					if got := string(b.Bytes()); got != "<"+x.want+">" || b.Len() != int64(len(got)) {
						t.Errorf("got %s, want %s", got, x.want)
					}
				}
			}
		})
	}
	wg.Wait()
}
