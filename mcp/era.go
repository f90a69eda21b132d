package mcp

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
)

// find detects the era and opens it. It returns the client; if it also returns an error, the caller must close the
// client.
func find(ctx context.Context, cfg ClientConfig, c *Client, log *steps) (*Client, error) {
	log.begin(StepDiscover)
	decided, err := false, error(nil)
	if c.http != nil {
		err = c.begin(ctx, Modern)
	} else {
		decided, err = c.hail(ctx, log)
	}
	var lost *jsonrpc.LostError
	fresh := false
	switch {
	case err == nil, decided:
		return c, err
	case ctx.Err() != nil:
		return c, ctx.Err()
	case isLegacyAnswer(err):
	case isAnswer(err), errors.As(err, &lost) && !lost.Sent, tenon.ErrorCode(err) == tenon.CodeAuth,
		tenon.ErrorCode(err) == tenon.CodeRateLimited,
		tenon.ErrorCode(err) == tenon.CodeDenied:
		return c, err // the error does not depend on the era
	case errors.As(err, &lost), c.http == nil:
		fresh = true // it has ended, or may still be busy with the unknown request
	}
	cfg.Logger.Debug("not a modern MCP server; trying initialize", "reason", err.Error())
	if fresh {
		_ = c.Close() // unusable
		if c, err = dial(ctx, cfg, log); err != nil {
			return nil, err
		}
	}
	log.begin(StepInitialize)
	if err = c.begin(ctx, LatestLegacy); isModernAnswer(err) {
		log.begin(StepDiscover) // it was only slow to start
		err = c.begin(ctx, Modern)
	}
	return c, err
}

// opening is the outcome of a request that opens an era. The zero value means that there was no answer.
type opening struct {
	info *Info
	err  error
}

// hail detects the era over a stream. Some legacy servers never answer server/discover, but a server may also be slow
// to start. Therefore initialize follows server/discover on the same connection; a slow server answers both. The
// error is context.DeadlineExceeded if there was no answer, otherwise the error of the decisive request. decided
// reports that another attempt would not change the result.
func (c *Client) hail(ctx context.Context, log *steps) (decided bool, err error) {
	asked, stop := c.patient(ctx)
	var calls sync.WaitGroup
	ask := func(request func(context.Context) (*Info, error)) <-chan opening {
		came := make(chan opening, 1)
		calls.Go(func() {
			info, err := request(asked)
			came <- opening{info, err}
		})
		return came
	}
	var modern, legacy opening
	defer func() {
		// Both requests have ended when the era is known, so that neither is cancelled: a request that opens a
		// connection must not be cancelled (2025-11-25, cancellation).
		stop()
		calls.Wait()
		switch {
		case modern.info != nil:
			c.info.Store(modern.info)
		case legacy.info != nil:
			if err = c.accept(ctx, legacy.info); err == nil {
				c.info.Store(legacy.info)
			}
		}
	}()

	discovered := ask(c.discover)
	if modern = within(c.cfg.DiscoverTimeout, discovered); modern != (opening{}) {
		return false, modern.err
	}
	proposed := ask(func(ctx context.Context) (*Info, error) { return c.propose(ctx, LatestLegacy) })
	end, _ := asked.Deadline()
	giveUp := time.NewTimer(time.Until(end) * 3 / 4) // the rest of the time is for another attempt
	defer giveUp.Stop()
	select {
	case modern = <-discovered:
	case legacy = <-proposed:
		if isModernAnswer(legacy.err) {
			modern = <-discovered
		} else {
			modern = within(c.cfg.DiscoverTimeout/3, discovered) // the server may work on both requests at once
		}
	case <-giveUp.C:
		return false, context.DeadlineExceeded
	}
	switch {
	case modern.info != nil:
		return true, nil
	case isLegacyAnswer(modern.err):
		log.begin(StepInitialize)
		if legacy == (opening{}) {
			legacy = <-proposed
		}
		return true, legacy.err
	case modern.err != nil:
		return false, modern.err
	case legacy.err != nil: // possibly an error about server/discover
		return false, context.DeadlineExceeded
	}
	log.begin(StepInitialize)
	return true, nil
}

// within returns the outcome if it arrives in time, and otherwise the zero value.
func within(d time.Duration, came <-chan opening) opening {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case r := <-came:
		return r
	case <-t.C:
		return opening{}
	}
}

// begin opens the era of a revision.
func (c *Client) begin(ctx context.Context, version string) error {
	var info *Info
	var err error
	if version == Modern {
		info, err = c.discover(ctx)
	} else {
		info, err = c.initialize(ctx, version)
	}
	if err == nil {
		c.info.Store(info)
	}
	return err
}

// discover sends server/discover, which replaces the initialize request of the legacy era. The client uses the modern
// protocol from then on, unless discover fails.
func (c *Client) discover(ctx context.Context) (*Info, error) {
	c.meta = c.modernMeta(c.cfg.Answers.For(nil), c.cfg.LogLevel)
	if c.http != nil {
		c.http.SetProtocol(Modern, true)
	}
	ctx, cancel := c.patient(ctx)
	defer cancel()
	result, err := c.send(ctx, "server/discover", nil, nil, "", nil, nil)
	if isModernAnswer(err) {
		// The server refused the version of the request, but lists that version as supported: ask once more.
		result, err = c.send(ctx, "server/discover", nil, nil, "", nil, nil)
	}
	if err == nil && !supports(result, "supportedVersions", isModern) {
		err = jsonrpc.Errorf(jsonrpc.CodeInternal, "server/discover names no version that is spoken here")
	}
	if err != nil {
		c.meta = nil
		if c.http != nil {
			c.http.SetProtocol("", false)
		}
		return nil, err
	}
	return describe(Modern, result, rawjson.Field(rawjson.Field(result, "_meta"), metaServer)), nil
}

// isAnswer reports whether an error is a response of the server.
func isAnswer(err error) bool {
	var rpc *jsonrpc.Error
	return errors.As(err, &rpc)
}

// isLegacyAnswer reports whether an error in answer to server/discover comes from a server of the legacy era.
func isLegacyAnswer(err error) bool {
	var rpc *jsonrpc.Error
	return errors.As(err, &rpc) &&
		(!isModernError(rpc) || rpc.Code == codeUnsupportedVersion && supports(rpc.Data, "supported", IsLegacy))
}

// isModernAnswer reports whether an error says that the server speaks the modern era.
func isModernAnswer(err error) bool {
	var rpc *jsonrpc.Error
	return errors.As(err, &rpc) && rpc.Code == codeUnsupportedVersion && supports(rpc.Data, "supported", isModern)
}

func isModern(version string) bool { return version == Modern }

// supports reports whether the list of versions under the key contains a wanted one.
func supports(object []byte, key string, wanted func(string) bool) bool {
	for v := range rawjson.Elements(rawjson.Field(object, key)) {
		if wanted(rawjson.String(v)) {
			return true
		}
	}
	return false
}
