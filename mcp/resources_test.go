package mcp_test

import (
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
)

// TestServedResources lists and reads the resources of a server in both eras.
func TestServedResources(t *testing.T) {
	for era, cfg := range map[string]mcp.ServerConfig{"legacy": {NoModern: true}, "modern": {NoLegacy: true}} {
		cfg.Resources = []mcp.ServerResource{{URI: "test://a", Name: "a", MimeType: "text/plain", Text: "abc"}}
		for kind, dial := range ends(t, cfg) {
			t.Run(era+" "+kind, func(t *testing.T) {
				c := connect(t, mcp.ClientConfig{Dial: dial})
				list, err := c.Resources(t.Context())
				if err != nil || len(list) != 1 || list[0].URI != "test://a" {
					t.Errorf("list: %+v, %v", list, err)
				}
				got, err := c.Read(t.Context(), "test://a")
				if err != nil || len(got) != 1 || got[0].Text != "abc" || got[0].MimeType != "text/plain" {
					t.Errorf("read: %+v, %v", got, err)
				}
				if _, err := c.Read(t.Context(), "test://b"); tenon.ErrorCode(err) == "" {
					t.Error("a resource that is not there was read")
				}
			})
		}
	}
}
