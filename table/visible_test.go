package table

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tenonhq/tenon"
)

// TestVisibleNames checks that errors about names of a stranger's table contain no hidden characters.
func TestVisibleNames(t *testing.T) {
	const hidden = "a\u202egpj\x1b[2J"
	for name, server := range map[string]string{"no address": "", "not a URI": "http://\x7f" + hidden, "no host": "http:///" + hidden,
		"no server": SchemeServer + ":#" + hidden, "no command": SchemeCommand + ":?x=" + hidden, "scheme": "file:///" + hidden} {
		t.Run("SEC-F15_"+name, func(t *testing.T) {
			_, err := (&Tool{Name: hidden, Server: server}).Address()
			if err == nil || strings.ContainsAny(err.Error(), "\u202e\x1b\x7f") || !strings.Contains(err.Error(), `a\u{202e}gpj\u{1b}[2J`) {
				t.Errorf("%q", err)
			}
		})
	}
	t.Run("SEC-F15_store", func(t *testing.T) {
		_, err := newStore("s", fstest.MapFS{"b": {}}).under(hidden)
		if err == nil || tenon.Visible(err.Error()) != err.Error() {
			t.Errorf("%q", err)
		}
	})
}
