package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"

	"lancefleet/workflows"
)

// A server takes up to a minute until every part of it knows a new attribute.
const (
	attributeWait = 90 * time.Second
	attributePoll = 500 * time.Millisecond
)

func searchAttributes() []string {
	return []string{workflows.AttrExperiment, workflows.AttrAction, workflows.AttrOutcome}
}

// registerAttributes makes sure that the namespace knows our search attributes. An
// unknown one fails every start that carries it, so this comes before the schedule.
func registerAttributes(ctx context.Context, operator operatorservice.OperatorServiceClient, namespace string) error {
	missing, err := missingAttributes(ctx, operator, namespace)
	if err != nil || len(missing) == 0 {
		return err
	}
	_, err = operator.AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: namespace, SearchAttributes: missing,
	})
	var exists *serviceerror.AlreadyExists
	if err != nil && !errors.As(err, &exists) { // another worker was faster
		return fmt.Errorf("register search attributes in namespace %s: %w; somebody who may can do it with "+
			"temporal operator search-attribute create --name %s --name %s --name %s --type Keyword --type Keyword --type Keyword",
			namespace, err, workflows.AttrExperiment, workflows.AttrAction, workflows.AttrOutcome)
	}
	return awaitAttributes(ctx, operator, namespace)
}

func missingAttributes(ctx context.Context, operator operatorservice.OperatorServiceClient, namespace string) (map[string]enumspb.IndexedValueType, error) {
	known, err := operator.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return nil, fmt.Errorf("list search attributes of namespace %s: %w", namespace, err)
	}
	missing := map[string]enumspb.IndexedValueType{}
	for _, name := range searchAttributes() {
		switch kind, ok := known.GetCustomAttributes()[name]; {
		case !ok:
			missing[name] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
		case kind != enumspb.INDEXED_VALUE_TYPE_KEYWORD:
			return nil, fmt.Errorf("search attribute %s of namespace %s is a %s: it must be a Keyword", name, namespace, kind)
		}
	}
	return missing, nil
}

func awaitAttributes(ctx context.Context, operator operatorservice.OperatorServiceClient, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, attributeWait)
	defer cancel()
	ticker := time.NewTicker(attributePoll)
	defer ticker.Stop()
	for {
		missing, err := missingAttributes(ctx, operator, namespace)
		if err != nil || len(missing) == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %d new search attributes of namespace %s: %w", len(missing), namespace, ctx.Err())
		case <-ticker.C:
		}
	}
}
