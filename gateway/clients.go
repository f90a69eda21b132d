package gateway

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/mcp"
)

const (
	// maxClients bounds the clients that are remembered. The client that was seen longest ago is forgotten first.
	maxClients = 1024
	// maxOfOne bounds the clients of one principal, so that no principal makes the clients of others forgotten. A
	// client names itself, so one program can have any number of names.
	maxOfOne = 256
	// maxNameLen bounds a name and a version, in characters.
	maxNameLen = 80
)

// clientKey identifies a client: its principal and endpoint, and how it names itself.
type clientKey struct {
	door doorKey
	id   mcp.ClientID
}

// clients are the clients that have used the gateway lately. The zero value has none.
type clients struct {
	mu  sync.Mutex
	all map[clientKey]*host.GatewayClient
	of  map[tenon.Principal]int // number of clients
}

// keyOf returns the key of a client. Names are shortened, and hidden characters in them become visible.
func (d *door) keyOf(id mcp.ClientID) clientKey {
	id.Name, id.Version = shown(id.Name), shown(id.Version)
	return clientKey{d.key, id}
}

// shown returns the shortened name of a client. Most names are short and plain, so they are not copied. Combining marks
// become codes beyond the first three of a character, because they could cover other lines of a list. Marks without a
// character become codes too, because a name of marks would look empty.
func shown(name string) string {
	if len(name) > 4*maxNameLen {
		name = name[:4*maxNameLen]
	}
	return tenon.Shorten(plainMarks(tenon.Visible(name)), maxNameLen)
}

// maxMarks is the number of combining marks of a character in a name.
const maxMarks = 3

// isMark reports whether a character is drawn over the one before it.
func isMark(r rune) bool { return unicode.In(r, unicode.Mn, unicode.Me) }

// plainMarks replaces combining marks that do not belong to a letter, or are too many, by their codes.
func plainMarks(name string) string {
	if !strings.ContainsFunc(name, isMark) {
		return name
	}
	var b strings.Builder
	marks := maxMarks // of the current character; the first one has none before it
	for _, r := range name {
		switch {
		case !isMark(r):
			marks = 0
			if unicode.IsSpace(r) {
				marks = maxMarks
			}
			b.WriteRune(r)
		case marks < maxMarks:
			marks++
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
	}
	return b.String()
}

// note finds or remembers a client that was seen now, and calls change with it.
func (c *clients) note(key clientKey, change func(*host.GatewayClient)) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.all[key]
	if one == nil {
		c.makeRoom(key.door.who)
		era := "legacy"
		if key.id.IsModern() {
			era = "modern"
		}
		one = &host.GatewayClient{Name: key.id.Name, Version: key.id.Version, Era: era, Protocol: key.id.Protocol,
			Principal: key.door.who, Endpoint: key.door.endpoint, Since: now}
		if c.all == nil {
			c.all, c.of = map[clientKey]*host.GatewayClient{}, map[tenon.Principal]int{}
		}
		c.all[key] = one
		c.of[key.door.who]++
	}
	one.Seen = now
	change(one)
}

// makeRoom forgets a client if a further client of a principal would be too many. The lock is held.
func (c *clients) makeRoom(who tenon.Principal) {
	full := c.of[who] >= maxOfOne
	if !full && len(c.all) < maxClients {
		return
	}
	var oldest clientKey
	var seen time.Time
	for key, one := range c.all {
		if full && key.door.who != who {
			continue
		}
		if seen.IsZero() || one.Seen.Before(seen) {
			oldest, seen = key, one.Seen
		}
	}
	delete(c.all, oldest)
	if c.of[oldest.door.who]--; c.of[oldest.door.who] == 0 {
		delete(c.of, oldest.door.who)
	}
}

// joined, seenClient and left follow the client of a door; see [mcp.ServerConfig.Joined].
func (d *door) joined(id mcp.ClientID) {
	d.g.clients.note(d.keyOf(id), func(c *host.GatewayClient) { c.Sessions++ })
}

func (d *door) seenClient(id mcp.ClientID) {
	d.g.clients.note(d.keyOf(id), func(*host.GatewayClient) {})
}

func (d *door) left(id mcp.ClientID) {
	all, key := &d.g.clients, d.keyOf(id)
	all.mu.Lock()
	defer all.mu.Unlock()
	if c := all.all[key]; c != nil && c.Sessions > 0 { // it may be forgotten, and remembered again
		c.Sessions--
	}
}

// counts counts a call of a client. The returned function counts the first verdict about the call.
func (d *door) counts(id mcp.ClientID) (judged func(tenon.Verdict)) {
	if id.Protocol == "" {
		return func(tenon.Verdict) {} // the client has not initialized
	}
	key := d.keyOf(id)
	d.g.clients.note(key, func(c *host.GatewayClient) {
		c.Calls++
		c.LastCall = c.Seen
	})
	var once sync.Once
	return func(v tenon.Verdict) {
		once.Do(func() {
			d.g.clients.note(key, func(c *host.GatewayClient) {
				switch v {
				case tenon.Allow:
					c.Allowed++
				case tenon.Ask:
					c.Asked++
				case tenon.Deny:
					c.Denied++
				}
			})
		})
	}
}

// verdictOf returns the verdict about a call that was sent or refused at once, from the error with which it ended. It
// returns "" if a limit or its arguments stopped it. A call begins only after the rules have decided about it, so that
// any other error, such as unreachable or store, is of a call that they allowed.
func verdictOf(err error) tenon.Verdict {
	switch tenon.ErrorCode(err) {
	case tenon.CodeDenied:
		return tenon.Deny
	case tenon.CodeLimit, tenon.CodeNotFound, tenon.CodeInvalid:
		return ""
	}
	return tenon.Allow
}

// Clients returns the clients that have used the gateway lately, the latest first: at most 1,024, and 256 of one
// principal.
func (g *Gateway) Clients() []host.GatewayClient {
	g.clients.mu.Lock()
	list := make([]host.GatewayClient, 0, len(g.clients.all))
	for _, c := range g.clients.all {
		list = append(list, *c)
	}
	g.clients.mu.Unlock()
	slices.SortFunc(list, func(a, b host.GatewayClient) int {
		return cmp.Or(b.Seen.Compare(a.Seen), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Principal, b.Principal))
	})
	return list
}
