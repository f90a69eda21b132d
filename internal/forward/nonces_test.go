package forward

import (
	"encoding/binary"
	"testing"
	"time"
)

// TestNonces remembers nonces for as long as their requests are valid, and not more than the bound.
func TestNonces(t *testing.T) {
	var n nonces
	start := time.Now()
	for _, step := range []struct {
		after time.Duration
		nonce string
		fresh bool
	}{
		{0, "a", true}, {0, "a", false}, {59 * time.Second, "b", true}, {60 * time.Second, "a", false},
		{61 * time.Second, "c", true}, {61 * time.Second, "b", false}, {119 * time.Second, "b", false},
		{122 * time.Second, "d", true}, {122 * time.Second, "c", false}, {122 * time.Second, "a", true},
	} {
		if fresh, full := n.add([]byte(step.nonce), start.Add(step.after)); fresh != step.fresh || full {
			t.Errorf("%s after %v: fresh %v, full %v", step.nonce, step.after, fresh, full)
		}
	}
	n = nonces{}
	for i := range maxNonces {
		n.add(binary.BigEndian.AppendUint32(nil, uint32(i)), start)
	}
	if _, full := n.add([]byte("one more"), start); !full || len(n.new) != maxNonces {
		t.Errorf("one more than the bound: full %v, %d nonces", full, len(n.new))
	}
	if fresh, full := n.add([]byte("one more"), start.Add(3*window)); !fresh || full {
		t.Errorf("after the window: fresh %v, full %v", fresh, full)
	}
}
