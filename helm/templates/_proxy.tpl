{{/* The pod of the proxy, without and only its container. (dict "root" $ "plan" $plan "values" .Values.proxy) */}}
{{- define "duet.proxySpec" -}}
{{- $values := .values -}}
enableServiceLinks: false
serviceAccountName: {{ include "duet.serviceAccount" .root }}
automountServiceAccountToken: true
terminationGracePeriodSeconds: {{ .plan.proxy.terminationGracePeriodSeconds }}
securityContext:
  {{- toYaml $values.podSecurityContext | nindent 2 }}
{{- include "duet.placement" . }}
{{- with $values.affinity }}
affinity:
  {{- tpl (toYaml .) $.root | nindent 2 }}
{{- end }}
volumes:
  - name: config
    configMap:
      name: {{ include "duet.fullname" .root }}-proxy
  - name: tmp
    emptyDir: {}
  {{- if .plan.proxy.tls }}
  - name: tls
    secret:
      secretName: {{ required "proxy.tls.existingSecret: the proxy speaks TLS: name the Secret (kubernetes.io/tls) that has its certificate and key" $values.tls.existingSecret }}
  {{- end }}
  {{- with $values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "duet.proxyContainer" -}}
{{- $proxy := .plan.proxy }}{{ $values := .values -}}
name: proxy
image: {{ include "duet.image" $values.image | quote }}
imagePullPolicy: {{ $values.image.pullPolicy }}
command: [{{ $values.python | quote }}, -P, -m, proxy, --config, /etc/duet/proxy.json]
env:
  {{- $extra := dict }}
  {{- range $values.extraEnv }}{{ $_ := set $extra .name true }}{{ end }}
  {{- if not (hasKey $extra "HOME") }}
  - name: HOME
    value: /tmp
  {{- end }}
  {{- range $name := $proxy.variables }}
  {{- if not (hasKey $extra $name) }}
  - name: {{ $name }}
    valueFrom:
      secretKeyRef:
        name: {{ required (printf "existingSecret: the proxy needs %s: name a Secret of this namespace that has it by this key" $name) $.root.Values.existingSecret }}
        key: {{ $name }}
  {{- end }}
  {{- end }}
  {{- with $values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
ports:
  - {name: http, containerPort: {{ $proxy.port }}, protocol: TCP}
  {{- if $proxy.adminPort }}
  - {name: admin, containerPort: {{ $proxy.adminPort }}, protocol: TCP}
  {{- end }}
# It listens when it has seen the cluster and sent the first canaries, which may take as long as the profile lets them.
startupProbe:
  httpGet:
    path: /health
    port: http
    scheme: {{ $proxy.tls | ternary "HTTPS" "HTTP" }}
  periodSeconds: 2
  timeoutSeconds: 10
  failureThreshold: 300
readinessProbe:
  httpGet:
    path: /ready
    {{- if $proxy.adminPort }}
    port: admin
    {{- else }}
    port: http
    scheme: {{ $proxy.tls | ternary "HTTPS" "HTTP" }}
    {{- end }}
  periodSeconds: 2
  timeoutSeconds: 5
livenessProbe:
  httpGet:
    path: /health
    port: http
    scheme: {{ $proxy.tls | ternary "HTTPS" "HTTP" }}
  periodSeconds: 10
  timeoutSeconds: 10
  failureThreshold: 6
lifecycle:
  preStop:
    exec:
      # Balancers notice that it leaves; then it ends, in its own time.
      command: [{{ $values.python | quote }}, -c, "import time; time.sleep({{ $values.preStopSeconds }})"]
resources:
  {{- toYaml $values.resources | nindent 2 }}
securityContext:
  {{- toYaml $values.containerSecurityContext | nindent 2 }}
volumeMounts:
  - {name: config, mountPath: /etc/duet, readOnly: true}
  - {name: tmp, mountPath: /tmp}
  {{- if $proxy.tls }}
  - {name: tls, mountPath: {{ $values.tls.mountPath }}, readOnly: true}
  {{- end }}
  {{- with $values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
