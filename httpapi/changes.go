package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strconv"
	"time"
)

const (
	// changesEvery is the shortest time between two notices of one stream. Clients reload the named topics after each
	// notice, so more notices would cause too much load.
	changesEvery = 250 * time.Millisecond
	// lookEvery is the interval at which a stream polls the states of the servers. State changes cause no
	// notifications.
	lookEvery = time.Second
)

// The topics of [Changes].
var (
	storeTopics  = []string{"runs", "sessions", "approvals"}
	serverTopics = []string{"servers", "tools", "prompts"}
	configTopics = []string{"config"}
)

// Changes is an event of GET /api/v1/changes. It names the topics that a client should reload. It contains no ids,
// because all principals receive the same stream.
type Changes struct {
	Topics []string `json:"topics"` // runs, sessions, approvals, servers, tools, prompts, config
}

// changes streams a notice whenever the store, a server's state or the configuration has changed. The stream cannot be
// resumed: a client that reconnects must reload everything.
func (c *call) changes() error {
	s, ok := c.stream(": changes\n\n")
	if !ok {
		return nil
	}
	ctx, cancel := context.WithCancel(c.ctx())
	defer cancel()
	seen, edits := c.serverSum(), c.edits()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	changed := c.h.Service().Storage().State().Changed(ctx)
	quiet := time.Now()
	n := 0
	for {
		var topics []string
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			// One notice covers all changes within changesEvery.
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(changesEvery):
			}
			changed = c.h.Service().Storage().State().Changed(ctx)
			topics = storeTopics
		case <-look.C:
			if sum := c.serverSum(); sum != seen {
				seen, topics = sum, serverTopics
			}
			if n := c.edits(); n != edits {
				edits, topics = n, slices.Concat(topics, configTopics)
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

// edits returns a number that changes with the configuration and with the proposals that wait for the owner. For
// callers other than the owner, it returns 0.
func (c *call) edits() uint64 {
	if c.cfg.Editor == nil || !c.caller.Owner {
		return 0
	}
	return c.cfg.Editor.Version()
}

// serverSum returns a hash of the states of all servers.
func (c *call) serverSum() [sha256.Size]byte {
	list, err := c.h.Servers().List(c.ctx())
	if err != nil {
		return [sha256.Size]byte{}
	}
	b, err := json.Marshal(list)
	if err != nil {
		return [sha256.Size]byte{}
	}
	return sha256.Sum256(b)
}
