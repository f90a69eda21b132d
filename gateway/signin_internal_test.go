package gateway

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/mcp"
)

// TestGW_11_OwnOrigin checks that a Host is only believed if it is the address of this end of the connection.
func TestGW_11_OwnOrigin(t *testing.T) {
	loopback, lan := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8420}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 8420}
	loopback6 := &net.TCPAddr{IP: net.IPv6loopback, Port: 8420}
	for name, tt := range map[string]struct {
		host  string
		local net.Addr
		tls   bool
		want  string
	}{
		"the address":                {"127.0.0.1:8420", loopback, false, "http://127.0.0.1:8420"},
		"a name of the loopback":     {"LocalHost:8420", loopback, false, "http://localhost:8420"},
		"IPv6":                       {"[::1]:8420", loopback6, false, "http://[::1]:8420"},
		"IPv6 by its name":           {"localhost:8420", loopback6, false, "http://localhost:8420"},
		"TLS":                        {"localhost:8420", loopback, true, "https://localhost:8420"},
		"an address of the network":  {"10.0.0.7:8420", lan, false, "http://10.0.0.7:8420"},
		"the port of the scheme":     {"127.0.0.1", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}, false, "http://127.0.0.1"},
		"another port":               {"127.0.0.1:9999", loopback, false, ""},
		"no port":                    {"localhost", loopback, false, ""},
		"another name":               {"evil.example:8420", loopback, false, ""},
		"another loopback address":   {"127.0.0.2:8420", loopback, false, ""},
		"another address":            {"10.0.0.8:8420", lan, false, ""},
		"a name of the network":      {"tenon.example:8420", lan, false, ""},
		"the loopback, from outside": {"localhost:8420", lan, false, ""},
		"a user":                     {"127.0.0.1:8420@evil.example:8420", loopback, false, ""},
		"a path":                     {"127.0.0.1:8420/evil", loopback, false, ""},
		"a unix socket":              {"localhost:8420", &net.UnixAddr{Name: "/tmp/a", Net: "unix"}, false, ""},
		"no connection":              {"localhost:8420", nil, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
			r.Host = tt.host
			if tt.tls {
				r.TLS = &tls.ConnectionState{}
			}
			if tt.local != nil {
				r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, tt.local))
			}
			if got := ownOrigin(r); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// TestGW_11_ManyLinks checks who loses a link when there are too many, and that sign-ins under way stay.
func TestGW_11_ManyLinks(t *testing.T) {
	var s signIns
	link := func(who tenon.Principal, n int) *signIn {
		return s.link(host.SignInLink{Principal: who, Server: fmt.Sprint(n)}, mcp.Session{})
	}
	use := func(one *signIn) *signIn {
		if _, err := s.take(one.ticket, one.Principal, func() {}); err != nil {
			t.Fatal(err)
		}
		return one
	}
	holds := func(one *signIn) bool {
		return slices.Contains(s.list, one)
	}
	used, unused := use(link("anna", 0)), link("anna", 1)
	for n := 2; n <= maxSignInsOf; n++ {
		link("anna", n)
	}
	if !holds(used) || holds(unused) || len(s.list) != maxSignInsOf {
		t.Errorf("her sign-in stays: %v, her unused link: %v; %d links", holds(used), holds(unused), len(s.list))
	}

	s = signIns{}
	first := link("bert", 0) // the oldest of all
	for n := range maxSignInsOf {
		use(link("carl", n))
	}
	last := s.list[1]
	for who := 0; len(s.list) < maxSignIns; who++ {
		link(tenon.Principal(fmt.Sprint("user", who)), 0)
	}
	link("dora", 0)
	if !holds(first) || holds(last) || len(s.list) != maxSignIns {
		t.Errorf("the only link stays: %v, the oldest of most: %v; %d links", holds(first), holds(last), len(s.list))
	}
}
