package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"strconv"
	"time"
)

const (
	// changesEvery is the shortest time between two notices of one stream: whoever
	// reads them reads again what they name.
	changesEvery = 250 * time.Millisecond
	// lookEvery is how often a stream looks at the states of the servers, which are in
	// memory and tell nobody.
	lookEvery = time.Second
)

// The topics of [Changes].
var (
	storeTopics  = []string{"runs", "sessions", "approvals"}
	serverTopics = []string{"servers", "tools", "prompts"}
)

// Changes is an event of GET /api/v1/changes: what is to be read again. It names no
// ids, because the stream is the same for all principals.
type Changes struct {
	Topics []string `json:"topics"` // runs, sessions, approvals, servers, tools, prompts
}

// changes tells, as a stream, when the store or a server's state has changed. It has
// no past: whoever comes again reads everything again.
func (c *call) changes() error {
	s, ok := c.stream(": changes\n\n")
	if !ok {
		return nil
	}
	ctx, cancel := context.WithCancel(c.ctx())
	defer cancel()
	seen := c.serverSum()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	changed := c.h.Changed(ctx)
	quiet := time.Now()
	n := 0
	for {
		var topics []string
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			// What follows at once is told in the same notice.
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(changesEvery):
			}
			changed = c.h.Changed(ctx)
			topics = storeTopics
		case <-look.C:
			if sum := c.serverSum(); sum != seen {
				seen, topics = sum, serverTopics
			}
		}
		text := ":\n\n"
		if topics != nil {
			b, err := encode(Changes{topics})
			if err != nil {
				return nil // our own type
			}
			n++
			text = "id: " + strconv.Itoa(n) + "\ndata: " + string(b) + "\n\n"
		} else if time.Since(quiet) < beat {
			continue
		}
		quiet = time.Now()
		if s.write(text) != nil {
			return nil // the client has gone
		}
	}
}

// serverSum changes when the state of a server does.
func (c *call) serverSum() [sha256.Size]byte {
	b, err := json.Marshal(c.h.Statuses())
	if err != nil {
		return [sha256.Size]byte{}
	}
	return sha256.Sum256(b)
}
