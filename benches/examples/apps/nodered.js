// Without a tour and without the question whether to report its use.
module.exports = { editorTheme: { tours: false }, telemetry: { enabled: false, updateNotification: false } };
