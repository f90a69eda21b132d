package config

import (
	"strings"
	"testing"

	"github.com/tenonhq/tenon/table"
)

// TestRowCredentials checks that policy.literal_secrets holds for the requests of a table's rows.
func TestRowCredentials(t *testing.T) {
	for name, r := range map[string]table.Request{
		"header": {URL: "https://a.example/", Headers: map[string]string{"X-Auth-Token": "in-a-row"}},
		"query":  {URL: "https://a.example/?api_key=in-a-row"},
	} {
		t.Run("RP-20_"+name, func(t *testing.T) {
			for grade, refused := range map[string]bool{"error": true, "warn": false, "off": false} {
				c, err := Parse("tenon.yaml", []byte("policy: {literal_secrets: "+grade+"}"),
					Options{Dir: t.TempDir(), LookupEnv: env()})
				if err != nil {
					t.Fatal(err)
				}
				_, err = c.RowTool(&table.Tool{Kind: table.HTTP, Name: "x", Description: "d",
					Parameters: `{"type":"object"}`, Message: -1, Server: r.URI()})
				if (err != nil) != refused || refused && !strings.Contains(err.Error(), literalToken) {
					t.Errorf("%s: %v", grade, err)
				}
			}
		})
	}
}
