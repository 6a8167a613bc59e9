package metrics

import (
	"fmt"
	"log/slog"

	"go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
)

// TemporalHandler gives the Temporal SDK's metrics to the registry. Call it once
// per process, and hand its result to the client's options.
func (m *Metrics) TemporalHandler(log *slog.Logger) (client.MetricsHandler, error) {
	exporter, err := prometheus.New(
		prometheus.WithRegisterer(m.Registry),
		prometheus.WithoutScopeInfo(),
		prometheus.WithoutTargetInfo(),
	)
	if err != nil {
		return nil, fmt.Errorf("export temporal's metrics: %w", err)
	}
	provider := metric.NewMeterProvider(metric.WithReader(exporter), metric.WithView(secondBuckets()))
	return opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{
		Meter:                provider.Meter("temporal-sdk-go"),
		UseMonotonicCounters: true,
		OnError:              func(err error) { log.Warn("temporal metric", "error", err) },
	}), nil
}

// secondBuckets replaces OpenTelemetry's default buckets, which are made for
// milliseconds, while the SDK records seconds.
func secondBuckets() metric.View {
	return metric.NewView(
		metric.Instrument{Kind: metric.InstrumentKindHistogram},
		metric.Stream{Aggregation: metric.AggregationExplicitBucketHistogram{Boundaries: sdkBuckets}},
	)
}
