package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon/host"
)

// Shell completion of what a server offers: names of prompts, values of their arguments, and URIs. Only the server has
// them, so the one that the line names is started, if the project is trusted and has a store.

// askTime is how long Tab may wait for a server.
const askTime = 8 * time.Second

// asks returns the offerer of the words after the name of a server. It completes them as a line of chat, which begins
// with sign, the server and a colon.
func asks(sign string) offerer {
	return func(ctx context.Context, k *known) (out []offer, _ error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime) // offerTime is too short for a start
		defer cancel()
		c, err := k.hostConfig(ctx)
		if err != nil {
			return nil, err
		}
		c.ReadOnly = false // a changed list of a server is recorded
		if k.h, err = host.Open(ctx, c); err != nil {
			return nil, err
		}
		before := sign + k.args[0] + ":"
		line := before + strings.Join(append(slices.Clone(k.args[1:]), k.begun), " ")
		_, list, err := possible(line, offersOf(ctx, k.h))
		for _, w := range list {
			word, whole := strings.CutSuffix(strings.TrimPrefix(w, before), " ")
			k.goesOn = k.goesOn || !whole
			out = append(out, offer{word: word})
		}
		return out, err
	}
}
