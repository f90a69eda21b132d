package model_test

import (
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

// TestMisplaced: a wrong deployment, version of the API, model or region names the key to change.
func TestMisplaced(t *testing.T) {
	const azure = "https://r.openai.azure.com/openai"
	for name, c := range map[string]struct {
		wire   string
		cfg    model.Config
		status int
		body   string
		want   string
	}{
		"MD-10_deployment": {"chat", model.Config{Provider: "openai-compatible", BaseURL: azure + "/deployments/d?api-version=2025-01-01"}, 404,
			`{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`,
			"correct the name of the deployment in models.NAME.base_url"},
		"MD-10_deployment_as_model": {"chat", model.Config{Provider: "openai-compatible", BaseURL: azure + "/v1"}, 404,
			`{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`,
			"set models.NAME.model to the name of a deployment"},
		"MD-10_version": {"chat", model.Config{Provider: "openai-compatible", BaseURL: azure + "/deployments/d?api-version=2020-01-01"}, 400,
			`{"error":{"code":"BadRequest","message":"API version not supported"}}`, "correct the query ?api-version= of models.NAME.base_url"},
		"MD-10_version_as_404": {"chat", model.Config{Provider: "openai-compatible", BaseURL: azure + "/deployments/d?api-version=2020-01-01"}, 404,
			`{"error":{"code":"404","message":"Resource not found"}}`, "correct the path or the query ?api-version= of models.NAME.base_url"},
		"MD-10_operation": {"chat", model.Config{Provider: "openai-compatible", BaseURL: azure + "/v1"}, 400,
			`{"error":{"code":"OperationNotSupported","message":"The chatCompletion operation does not work with the specified model, gpt-5. Please choose different model and try again."}}`,
			"change models.NAME.api or models.NAME.model"},
		"MD-10_vertex": {"vertex", model.Config{Project: "p", BaseURL: "http://127.0.0.1/v1"}, 404,
			`{"error":{"code":404,"message":"Publisher Model x was not found or your project does not have access to it.","status":"NOT_FOUND"}}`,
			"check models.NAME.model, and whether models.NAME.region and models.NAME.project have it"},
		"MD-10_identifier": {"bedrock", model.Config{BaseURL: "http://127.0.0.1"}, 400, `{"message":"The provided model identifier is invalid."}`,
			"check models.NAME.model, and whether models.NAME.region has it"},
		"MD-10_profile": {"bedrock", model.Config{BaseURL: "http://127.0.0.1"}, 400,
			`{"message":"Invocation of model ID x with on-demand throughput isn’t supported. Retry your request with the ID or ARN of an inference profile that contains this model."}`,
			"set models.NAME.model to the id or ARN of an inference profile"},
		"MD-9_service_tier": {"chat", model.Config{Provider: "openai", ServiceTier: "flex"}, 400,
			`{"error":{"message":"Unsupported value","param":"service_tier","code":"unsupported_value"}}`, "remove models.NAME.service_tier"},
		"MD-9_effort": {"chat", model.Config{Provider: "openai", Reasoning: "low"}, 400,
			`{"error":{"message":"Unsupported parameter","param":"reasoning_effort","code":"unsupported_parameter"}}`, "remove models.NAME.reasoning"},
		"MD-10_not_Azure": {"gemini", model.Config{Provider: "gemini"}, 404,
			`{"error":{"code":404,"message":"models/x is not found for API version v1beta","status":"NOT_FOUND"}}`, "check models.NAME.model and models.NAME.base_url"},
		"MD-10_unknown_model": {"chat", model.Config{Provider: "groq"}, 404,
			`{"error":{"code":"model_not_found","message":"The model x does not exist"}}`, "check models.NAME.model and models.NAME.base_url"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &provider{replies: []reply{{status: c.status, body: c.body}}}
			none := 0
			c.cfg.Model, c.cfg.APIKey, c.cfg.Retries = "x", tenon.NewSecret("k"), &none
			_, err := generate(t.Context(), adapter(t, c.wire, c.cfg, p.env()), question)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q is not in %v", c.want, err)
			}
		})
	}
}
