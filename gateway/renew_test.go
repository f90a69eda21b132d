package gateway_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/mcp"
)

// TestGW_15_SubscriptionOutlivesItsServer checks that a subscription continues at the server that has the resource after
// a reload, and that the client is notified when no server has it any more. The rules then decide about the new server.
func TestGW_15_SubscriptionOutlivesItsServer(t *testing.T) {
	serve := func(began chan string) *upstream {
		cfg := upstreams["modern"]
		cfg.Offers = func(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
			switch method {
			case "resources/list":
				return json.RawMessage(`{"resources":[{"uri":"test://a","name":"a"}]}`), nil
			case "resources/templates/list":
				return json.RawMessage(`{"resourceTemplates":[]}`), nil
			}
			return nil, nil
		}
		cfg.Watch = func(_ context.Context, uri string) (func(), error) {
			began <- uri
			return func() {}, nil
		}
		return serveUpstream(t, cfg)
	}
	for clientEra, version := range eras {
		t.Run(clientEra, func(t *testing.T) {
			began, renewed := make(chan string, 8), make(chan string, 8)
			w := open(t, upstreamConfig(serve(began), ""), gateway.Config{})
			next := open(t, "servers: {moved: {url: '"+serve(renewed).url+"'}}\n"+
				"policy: {rules: [{when: 'tool.server != \"moved\"', verdict: deny}]}\n", gateway.Config{})
			last := open(t, "{}", gateway.Config{})

			updates := make(chan string, 64)
			updated := func(what string) {
				t.Helper()
				until(t, what, func() bool {
					select {
					case got := <-updates:
						if got != "test://a" {
							t.Errorf("%s: %s", what, got)
						}
						return true
					default:
						return false
					}
				})
			}
			c := w.client(t, version, ownToken, func(cfg *mcp.ClientConfig) { cfg.Changed = func(string) {} })
			ctx, stop := context.WithCancel(t.Context())
			watched := make(chan error, 1)
			begun := make(chan struct{}, 8)
			go func() {
				watched <- c.Watch(ctx, "test://a", func() { begun <- struct{}{} }, func(uri string) { updates <- uri })
			}()
			<-began
			<-begun // before that, a closed server refuses the subscription

			w.gate.Use(next.host)
			_ = w.host.Close() // says what was under way
			if got := <-renewed; got != "test://a" {
				t.Errorf("the next server watches %s", got)
			}
			updated("an update of the next server")

			w.gate.Use(last.host)
			_ = next.host.Close()
			updated("a last update")
			stop()
			<-watched
		})
	}
}
