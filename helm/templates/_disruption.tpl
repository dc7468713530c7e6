{{/* How many pods may be away at a time. (dict "of" (as duet.metadata) "maxUnavailable" 1 "role" "prefill" or "") */}}
{{- define "duet.disruption" -}}
apiVersion: {{ semverCompare ">=1.21-0" .of.root.Capabilities.KubeVersion.Version | ternary "policy/v1" "policy/v1beta1" }}
kind: PodDisruptionBudget
metadata:
  {{- include "duet.metadata" .of | nindent 2 }}
spec:
  maxUnavailable: {{ .maxUnavailable }}
  {{- if semverCompare ">=1.27-0" .of.root.Capabilities.KubeVersion.Version }}
  # A pod that crashes anyway does not keep a node from being drained.
  unhealthyPodEvictionPolicy: AlwaysAllow
  {{- end }}
  selector:
    matchLabels:
      {{- include "duet.selector" .of | nindent 6 }}
      {{- with .role }}
      duet/role: {{ . }}
      {{- end }}
{{- end -}}
