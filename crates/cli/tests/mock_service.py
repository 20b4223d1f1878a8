"""Plays a service of the desktop by a template of python-dbusmock, on the session's bus, and says when it is there.

Usage: mock_service.py TEMPLATE PARAMETERS, the latter in JSON. Each call is logged on standard output.
"""

import json
import sys

import dbus
import dbus.mainloop.glib
import dbus.service
from dbusmock import mockobject
from gi.repository import GLib

template, parameters = sys.argv[1:]
dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
module = mockobject.load_module(template)
is_manager = getattr(module, "IS_OBJECT_MANAGER", False)
interface = getattr(module, "MAIN_IFACE", mockobject.OBJECT_MANAGER_IFACE)
name = dbus.service.BusName(module.BUS_NAME, dbus.SessionBus(), do_not_queue=True)
service = mockobject.DBusMockObject(name, module.MAIN_OBJ, interface, {}, None, is_manager)
service.AddTemplate(template, json.loads(parameters))
mockobject.objects[module.MAIN_OBJ] = service
print("ready", flush=True)
GLib.MainLoop().run()
