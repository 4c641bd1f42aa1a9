"""What browser tests do with a notebook that is open in a real Jupyter."""

# True when the notebook is open, its kernel is connected and has nothing to do.
IDLE = """() => {
    const widget = window.jupyterapp?.shell?.currentWidget;
    const kernel = widget?.context?.isReady && widget.sessionContext?.session?.kernel;
    return Boolean(kernel && kernel.connectionStatus === 'connected' && kernel.status === 'idle');
}"""
RUN_ALL = "() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }"


def wait_until_idle(page):
    for _ in range(2):  # a kernel that has just started is idle for a moment before it is told what to do
        page.wait_for_function(IDLE, timeout=60_000)
        page.wait_for_timeout(500)
