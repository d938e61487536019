"""The admin of Django over its own users and groups, on a port of loopback."""
import sys

import django
from django.conf import settings

PORT = sys.argv[1]
settings.configure(
    DEBUG=True, SECRET_KEY="loopback", PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"], ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], STATIC_URL="/static/",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "admin.sqlite3"}},
    INSTALLED_APPS=["django.contrib." + name for name in
                    ("admin", "auth", "contenttypes", "sessions", "messages", "staticfiles")],
    MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware",
                "django.contrib.auth.middleware.AuthenticationMiddleware",
                "django.contrib.messages.middleware.MessageMiddleware"],
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True, "OPTIONS": {
        "context_processors": ["django.template.context_processors.request",
                               "django.contrib.auth.context_processors.auth",
                               "django.contrib.messages.context_processors.messages"]}}],
)
django.setup()

from django.contrib import admin  # noqa: E402
from django.contrib.auth.models import Group, User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.urls import path  # noqa: E402

urlpatterns = [path("admin/", admin.site.urls)]

call_command("migrate", verbosity=0)
if not User.objects.exists():
    User.objects.create_superuser("admin", "admin@shop.example", "admin")
    for number in range(40):
        User.objects.create_user(f"user{number}", f"user{number}@shop.example", "secret", is_staff=number % 3 == 0)
    Group.objects.create(name="Sellers")
call_command("runserver", f"127.0.0.1:{PORT}", use_reloader=False)
