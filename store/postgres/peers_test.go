package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/tenonhq/tenon/store/signed"
)

// TestPeers announces the addresses of replicas. A replica whose row has expired or is deleted has none, and one whose
// row comes back has its address again.
func TestPeers(t *testing.T) {
	c := place(t)
	c.Lease = 6 * time.Second // with a short one, a busy machine lets a replica that is alive expire
	key, err := signed.NewKey([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	c.Key = key
	a, b := mustOpen(t, c), mustOpen(t, c)
	at := func(id string) string {
		t.Helper()
		address, alive, err := b.Peer(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if address != "" && !alive {
			t.Errorf("%q has an address and is gone", id)
		}
		return address
	}
	if got := at(a.Self()); got != "" {
		t.Errorf("before it is announced: %q", got)
	}
	if err := a.Announce(t.Context(), "http://10.0.0.1:8420"); err != nil {
		t.Fatal(err)
	}
	wait(t, "the address is announced", func() bool { return at(a.Self()) == "http://10.0.0.1:8420" })
	for _, id := range []string{"", "x", "\x00", "\xff", a.Self() + " "} {
		if got := at(id); got != "" {
			t.Errorf("an unknown replica %q is at %q", id, got)
		}
	}
	admin(t, "DELETE FROM "+c.Schema+".replicas WHERE id = '"+a.Self()+"'")
	wait(t, "the heartbeat restores the address", func() bool { return at(a.Self()) == "http://10.0.0.1:8420" })
	admin(t, "UPDATE "+c.Schema+".replicas SET address = '' WHERE id = '"+a.Self()+"'")
	wait(t, "the heartbeat writes the address again", func() bool { return at(a.Self()) == "http://10.0.0.1:8420" })
	given, end := context.WithCancel(t.Context())
	end()
	if err := a.Announce(given, "http://10.0.0.3:8420"); err == nil {
		t.Error("an announcement without time succeeds")
	}
	wait(t, "the heartbeat writes what failed", func() bool { return at(a.Self()) == "http://10.0.0.3:8420" })
	if err := a.Announce(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	wait(t, "the address is withdrawn", func() bool { return at(a.Self()) == "" })
	if err := a.Announce(t.Context(), "http://10.0.0.2:8420"); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]string{
		"another address":            "address = 'http://10.6.6.6:1'",
		"no MAC":                     "address = 'http://10.6.6.6:1', address_mac = NULL",
		"the address of another one": "address = o.address, address_mac = o.address_mac",
	} { // b's own heartbeat restores its row, so the rows are of replicas that do not run
		admin(t, "INSERT INTO "+c.Schema+".replicas (id, name, began, expires) VALUES ('fake', '', now(), now() + "+
			"interval '1 hour') ON CONFLICT DO NOTHING")
		admin(t, "UPDATE "+c.Schema+".replicas r SET "+change+" FROM "+c.Schema+".replicas o WHERE r.id = 'fake' AND "+
			"o.id = '"+a.Self()+"'")
		if got := at("fake"); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if _, alive, err := b.Peer(t.Context(), b.Self()); err != nil || !alive {
		t.Errorf("a replica without an address: %v, %v", alive, err)
	}
	if _, alive, err := b.Peer(t.Context(), a.Self()); err != nil || alive {
		t.Errorf("a closed replica: %v, %v", alive, err)
	}
	if got := at(a.Self()); got != "" {
		t.Errorf("a closed replica is at %q", got)
	}
	one, two := b.PeerKey("one"), b.PeerKey("two")
	if len(one) != 32 || string(one) == string(two) || string(one) != string(key.Derive("one")) {
		t.Errorf("the keys are %x and %x", one, two)
	}
}
