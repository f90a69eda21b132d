package servers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/policy"
)

// Identity distinguishes the entries that need separate servers. Entries that only differ in settings of the catalog
// and the rules lead to the same connection. It is a digest, because the values may be secret.
func (c Config) Identity() string {
	var secrets []string
	for _, s := range c.SecretValues() {
		secrets = append(secrets, s.Reveal())
	}
	c = c.WithDefaults()
	c.Replica = "" // the same server, wherever it runs
	c.Description, c.Enabled, c.Trusted, c.IsRetrieval, c.Defer = "", nil, nil, false, nil
	c.Include, c.Exclude, c.Where, c.Filters = nil, nil, "", nil
	c.Naming, c.Transform, c.Schema, c.ProviderOptions, c.Policy = catalog.Naming{}, nil, catalog.Schema{}, nil,
		policy.Block{}
	c.CallerCredentials, c.Principals = CallerCredentials{}, nil // connections of callers have separate keys
	b, err := json.Marshal([]any{c, secrets})
	if err != nil {
		return "" // cannot happen: these are strings, numbers and raw JSON that was parsed
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
