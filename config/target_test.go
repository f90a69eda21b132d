package config

import (
	"net/url"
	"testing"

	"github.com/tenonhq/tenon/servers"
)

// TestCanonicalURL checks that all spellings of a target have the same canonical form, and that two targets never have
// the same one.
func TestCanonicalURL(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"as is", "http://h/a", "http://h/a"},
		{"scheme and host", "HTTP://Example.COM/Path", "http://example.com/Path"},
		{"default port of http", "http://h:80/a", "http://h/a"},
		{"default port of https", "https://h:443/a", "https://h/a"},
		{"default port of ws", "ws://h:80", "ws://h/"},
		{"another port", "http://h:443/a", "http://h:443/a"},
		{"port with zeros", "http://h:00080/a", "http://h/a"},
		{"empty path", "http://h", "http://h/"},
		{"fragment", "http://h/a#tool=x", "http://h/a"},
		{"query stays in order", "http://h/a?b=1&a=2", "http://h/a?b=1&a=2"},
		{"empty query", "http://h/a?", "http://h/a"},
		{"rooted name", "http://h./a", "http://h/a"},
		{"needless escapes", "http://h/%61%7eb", "http://h/a~b"},
		{"escapes in lower case", "http://h/%c3%a4", "http://h/%C3%A4"},
		{"escaped slash", "http://h/a%2fb", "http://h/a%2Fb"},
		{"dot segments", "http://h/x/../a/./b", "http://h/a/b"},
		{"dot segments above the root", "http://h/../../a", "http://h/a"},
		{"escaped dot segments", "http://h/x/%2e%2e/a", "http://h/a"},
		{"last dot segment", "http://h/a/.", "http://h/a/"},
		{"final slash", "http://h/a/", "http://h/a/"},
		{"empty segments", "http://h/a//b", "http://h/a//b"},
		{"IPv6", "http://[0:0:0:0:0:0:0:1]:80/a", "http://[::1]/a"},
		{"IPv4 in IPv6", "http://[::ffff:127.0.0.1]/a", "http://127.0.0.1/a"},
		{"user", "http://u@H/a", "http://u@h/a"},
		{"not a URL", "no url", "no url"},
	} {
		t.Run("SEC-T1_"+tt.name, func(t *testing.T) {
			if got := CanonicalURL(tt.in); got != tt.want {
				t.Errorf("CanonicalURL(%q) = %q, want %q", tt.in, got, tt.want)
			}
			if again := CanonicalURL(tt.want); again != tt.want {
				t.Errorf("the canonical form %q has another one: %q", tt.want, again)
			}
		})
	}
}

func TestSameTarget(t *testing.T) {
	for _, tt := range []struct {
		name string
		a, b servers.Config
		want bool
	}{
		{"same URL", servers.Config{URL: "http://h/a"}, servers.Config{URL: "HTTP://H:80/a#x"}, true},
		{"auto and http", servers.Config{URL: "http://h/a", Transport: "auto"}, servers.Config{URL: "http://h/a"}, true},
		{"scheme", servers.Config{URL: "http://h/a"}, servers.Config{URL: "https://h/a"}, false},
		{"path", servers.Config{URL: "http://h/a"}, servers.Config{URL: "http://h/b"}, false},
		{"case of the path", servers.Config{URL: "http://h/a"}, servers.Config{URL: "http://h/A"}, false},
		{"query", servers.Config{URL: "http://h/a"}, servers.Config{URL: "http://h/a?x"}, false},
		{"user", servers.Config{URL: "http://u@h/a"}, servers.Config{URL: "http://h/a"}, false},
		{"port", servers.Config{URL: "http://h:8080/a"}, servers.Config{URL: "http://h/a"}, false},
		{"command", servers.Config{Command: "x", Args: []string{"a"}}, servers.Config{Command: "x", Args: []string{"a"}}, true},
		{"no arguments", servers.Config{Command: "x", Args: []string{}}, servers.Config{Command: "x"}, true},
		{"arguments", servers.Config{Command: "x", Args: []string{"a"}}, servers.Config{Command: "x", Args: []string{"b"}}, false},
		{"arguments joined", servers.Config{Command: "x", Args: []string{"a b"}}, servers.Config{Command: "x", Args: []string{"a", "b"}}, false},
		{"command and URL", servers.Config{Command: "x"}, servers.Config{URL: "http://h"}, false},
	} {
		t.Run("SEC-T1_"+tt.name, func(t *testing.T) {
			if got := SameTarget(tt.a, tt.b); got != tt.want {
				t.Errorf("SameTarget = %v, want %v", got, tt.want)
			}
			if got := TargetDigest(tt.a) == TargetDigest(tt.b); got != tt.want {
				t.Errorf("equal digests: %v, want %v", got, tt.want)
			}
		})
	}
}

func TestHasPlainHost(t *testing.T) {
	for in, want := range map[string]bool{"http://example.com/ä": true, "http://ｅxample.com": false, "http://exämple.com": false, "http://xn--exmple-cua.com": true, "http://127.0.0.1:1": true} {
		u, err := url.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := HasPlainHost(u); got != want {
			t.Errorf("HasPlainHost(%s) = %v, want %v", in, got, want)
		}
	}
}
