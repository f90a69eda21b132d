package awsauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/tenonhq/tenon"
)

// The link-local addresses of metadata services (ECS, EC2).
const (
	ecsHost = "169.254.170.2"
	ec2URL  = "http://169.254.169.254"
)

// fromContainer gets credentials from the address in a container's environment.
func (c *Chain) fromContainer(ctx context.Context) (Credentials, error) {
	address := c.env("AWS_CONTAINER_CREDENTIALS_FULL_URI")
	if rel := c.env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); rel != "" {
		address = "http://" + ecsHost + rel
	}
	if address == "" {
		return Credentials{}, errNone
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && !local(u.Hostname()) {
		return Credentials{}, errors.New("AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor an address of this " +
			"machine or of a container's agent")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return Credentials{}, err
	}
	token := c.env("AWS_CONTAINER_AUTHORIZATION_TOKEN")
	if file := c.env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); file != "" {
		data, err := readFile(file)
		if err != nil {
			return Credentials{}, fmt.Errorf("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: %w", err)
		}
		token = strings.TrimSpace(string(data))
	}
	if token != "" {
		r.Header.Set("Authorization", token)
	}
	data, err := c.do(r, fetchTime)
	if err != nil {
		return Credentials{}, fmt.Errorf("container: %w", err)
	}
	return metadata(u.Host, data)
}

// local reports whether a host is this machine or an agent of ECS or EKS.
func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && (ip.IsLoopback() || host == ecsHost || host == "169.254.170.23" ||
		host == "fd00:ec2::23")
}

// metadata reads credentials in the form in which containers and instances return them.
func metadata(host string, data []byte) (Credentials, error) {
	var k struct {
		AccessKeyID     string `json:"AccessKeyId"`
		SecretAccessKey string
		Token           string
		Expiration      string
	}
	if json.Unmarshal(data, &k) != nil || k.AccessKeyID == "" {
		return Credentials{}, fmt.Errorf("%s: the answer has no credentials", host)
	}
	return keys(k.AccessKeyID, k.SecretAccessKey, k.Token, k.Expiration), nil
}

// fromInstance gets credentials from the metadata service of an EC2 instance (IMDSv2). If the address does not respond,
// this machine is not an instance, and the error is errNone.
func (c *Chain) fromInstance(ctx context.Context) (Credentials, error) {
	if strings.EqualFold(c.env("AWS_EC2_METADATA_DISABLED"), "true") {
		return Credentials{}, errNone
	}
	base := ec2URL
	if v := c.env("AWS_EC2_METADATA_SERVICE_ENDPOINT"); v != "" {
		base = strings.TrimRight(v, "/")
	}
	ask := func(method, path, header, value string) ([]byte, error) {
		r, err := http.NewRequestWithContext(ctx, method, base+path, nil)
		if err != nil {
			return nil, err
		}
		r.Header.Set(header, value)
		return c.do(r, localTime)
	}
	token, err := ask(http.MethodPut, "/latest/api/token", "X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "300")
	if err != nil {
		if ctx.Err() != nil {
			return Credentials{}, ctx.Err()
		}
		return Credentials{}, errNone
	}
	const roles, header = "/latest/meta-data/iam/security-credentials/", "X-Aws-Ec2-Metadata-Token"
	role, err := ask(http.MethodGet, roles, header, string(token))
	if err != nil {
		return Credentials{}, errNone // an instance without a role
	}
	name, _, _ := strings.Cut(strings.TrimSpace(string(role)), "\n")
	data, err := ask(http.MethodGet, roles+url.PathEscape(name), header, string(token))
	if err != nil {
		return Credentials{}, fmt.Errorf("instance role %s: %w", tenon.Visible(name), err)
	}
	return metadata("the instance", data)
}
